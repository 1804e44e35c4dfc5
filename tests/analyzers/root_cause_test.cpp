// The rules' fixtures test the root cause as people meet it; here stands what they do not show.
#include "analyzers/rootcause/root_cause.h"

#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/intent.h"
#include "tests/analyzers/fixture.h"

namespace ampscope::analyzers {
namespace {

using nlohmann::json;

/// A straight line of operators: a → b → c → loss, without a scaler.
json line_of_ops() {
  return json::parse(R"({
    "optimizers": ["SGD"], "parameters": ["w float32[4,4] optimizer=0"],
    "sites": [
      {"id": "a", "op": "aten::mm", "at": "m.py:1", "in": ["float16[4,4]", "float16[4,4]"], "out": ["float16[4,4] grad"]},
      {"id": "b", "op": "aten::relu", "at": "m.py:2", "in": ["float16[4,4] from=a"], "out": ["float16[4,4] grad"]},
      {"id": "c", "op": "aten::exp", "at": "m.py:3", "in": ["float16[4,4] from=b"], "out": ["float16[4,4] grad"]},
      {"id": "loss", "op": "aten::mean", "at": "m.py:4", "in": ["float16[4,4] from=c"], "out": ["float16[] grad"]},
      {"id": "other", "op": "aten::mm", "at": "m.py:9", "grad": false, "in": ["float16[4,4]", "float16[4,4]"], "out": ["float16[4,4]"]},
      {"id": "exp_node", "kind": "backward_node", "op": "ExpBackward0", "phase": "backward", "forward": "c"},
      {"id": "exp_mul", "op": "aten::mul", "phase": "backward", "parent": "exp_node", "in": ["float16[4,4]", "float16[4,4] from=c"], "out": ["float16[4,4]"]}
    ]})");
}

json event(int step, const char* site, const char* kind, const char* from = nullptr) {
  const std::string type = std::string("float16[4,4]") + (from != nullptr ? std::string(" from=") + from : "");
  const bool bad_input = std::string(kind) == "propagator";
  json input = {{"type", type}, {"count", 16}, {"absmax", 200}};
  if (bad_input) input["+inf"] = 2;
  return {{"step", step},
          {"site", site},
          {"kind", kind},
          {"in", {input}},
          {"out", {{{"type", "float16[4,4]"}, {"+inf", 2}, {"count", 16}}}}};
}

const json good_step = {{"do", {"backward site=loss optimizers=0", "optimizer_step object=0"}}};
const json bad_step = {{"do", {"backward site=loss optimizers=0", "optimizer_step object=0 nonfinite_gradients"}}};

RootCause root_cause_of(const json& description) {
  // The analysis points into its trace, so the trace must outlive it.
  static std::deque<trace::Trace> traces;
  static std::deque<ProcessAnalysis> analyses;
  traces.push_back(testing::trace_from_json(description));
  analyses.emplace_back(traces.back(), SkipLimits{});
  return analyses.back().root_cause;
}

TEST(RootCause, NamesTheFirstThatTheLossDependsOn) {
  json run = line_of_ops();
  run["steps"] = {good_step, bad_step};
  // Something else is non-finite before, and feeds nothing.
  run["nonfinite"] = {event(1, "other", "producer"), event(1, "a", "producer"), event(1, "b", "propagator", "a"),
                      event(1, "c", "propagator", "b"), event(1, "loss", "propagator", "c")};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].site->name, "aten::mm");
  EXPECT_EQ(cause.origins[0].site->source.line, 1);
  EXPECT_EQ(cause.origins[0].kind, trace::OriginKind::producer);
  EXPECT_TRUE(cause.origins[0].outcome.loss_nonfinite);
}

TEST(RootCause, WithoutAGraphTheFirstThatCarriesGradients) {
  json run = line_of_ops();
  for (json& site : run["sites"]) {
    for (json& input : site["in"])
      input = input.get<std::string>().substr(0, input.get<std::string>().find(' '));
  }
  run["steps"] = {bad_step};
  run["nonfinite"] = {event(0, "other", "producer"), event(0, "b", "producer"), event(0, "loss", "propagator")};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].site->name, "aten::relu");
}

TEST(RootCause, GoesBackOverOperatorsThatWereNotChecked) {
  json run = line_of_ops();
  run["sites"][0]["checked_calls"] = 0;
  run["sites"][1]["checked_calls"] = 0;
  run["steps"] = {bad_step};
  run["nonfinite"] = {event(0, "c", "propagator", "b"), event(0, "loss", "propagator", "c")};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].site->name, "aten::mm");
  EXPECT_EQ(cause.origins[0].event->site, 2);
  EXPECT_EQ(cause.origins[0].kind, trace::OriginKind::unknown);
}

TEST(RootCause, DoesNotGoBackThroughIntegers) {
  json run = line_of_ops();
  run["sites"][0]["checked_calls"] = 0;
  run["sites"][0]["out"] = {"int64[4,4]"};
  run["sites"][1]["checked_calls"] = 0;
  run["sites"][1]["op"] = "aten::index";
  run["steps"] = {bad_step};
  run["nonfinite"] = {event(0, "c", "propagator", "b"), event(0, "loss", "propagator", "c")};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].site->name, "aten::exp");
  EXPECT_EQ(cause.origins[0].kind, trace::OriginKind::input);
}

TEST(RootCause, AfterTheWeightsAreLostAllIsVictim) {
  json run = line_of_ops();
  run["steps"] = {good_step, bad_step, bad_step, bad_step};
  run["nonfinite"] = {event(1, "a", "producer"), event(1, "loss", "propagator", "c"), event(2, "c", "producer"),
                      event(2, "loss", "propagator", "c"), event(3, "loss", "producer")};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].steps.first, 1);
  EXPECT_EQ(cause.origins[0].steps.last, 3);
  EXPECT_EQ(cause.origins[0].steps.count, 3);
}

TEST(RootCause, TwoFaultsInStepsThatWereSkippedAreTwoOrigins) {
  json run = line_of_ops();
  const json skipped = {{"do",
                         {"backward scaled site=loss optimizers=0", "unscale object=0 found_inf",
                          "optimizer_skip object=0", "scaler_update found_inf"}}};
  const json stepped = {{"do",
                         {"backward scaled site=loss optimizers=0", "unscale object=0",
                          "optimizer_step object=0 through_scaler", "scaler_update"}},
                        {"times", 10}};
  run["steps"] = {stepped, skipped, stepped, skipped, stepped, skipped};
  run["nonfinite"] = {event(10, "a", "producer"), event(10, "loss", "propagator", "c"),
                      event(21, "c", "producer"), event(21, "loss", "propagator", "c"),
                      event(32, "a", "producer"), event(32, "loss", "propagator", "c")};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 2U);
  EXPECT_EQ(cause.origins[0].site->name, "aten::mm");
  EXPECT_EQ(cause.origins[0].steps.count, 2);
  EXPECT_EQ(cause.origins[1].site->name, "aten::exp");
}

TEST(RootCause, LaterStepsThatKeepFewerCallsMakeNoSecondOrigin) {
  json run = line_of_ops();
  const json skipped = {{"do",
                         {"backward scaled site=loss optimizers=0", "unscale object=0 found_inf",
                          "optimizer_skip object=0", "scaler_update found_inf"}},
                        {"times", 3}};
  run["steps"] = {skipped};
  json later = event(2, "c", "input", "b");
  later["in"][0]["type"] = "float16[4,4] from=b grad";
  later["in"][0]["+inf"] = 2;
  run["nonfinite"] = {event(0, "a", "producer"), event(0, "loss", "propagator", "c"), later,
                      event(2, "loss", "propagator", "c")};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].site->name, "aten::mm");
  // Step 1 kept no call, and a scaler that settles is meant to skip.
  EXPECT_EQ(cause.origins[0].steps.last, 2);
  EXPECT_EQ(cause.origins[0].steps.count, 2);
}

TEST(RootCause, ADerivativeOfAnInfiniteResultIsItsVictim) {
  // exp overflows, what follows cuts it off, so the loss is finite; backward multiplies 0 by the infinity that was
  // saved.
  json run = line_of_ops();
  run["steps"] = {good_step, bad_step};
  json derivative = event(1, "exp_mul", "propagator", "c");
  derivative["out"] = {{{"type", "float16[4,4]"}, {"nan", 2}, {"count", 16}}};
  run["nonfinite"] = {event(1, "c", "producer"), derivative};
  run["nonfinite_gradients"] = {{{"step", 1}, {"parameter", "w"}, {"nan", 16}}};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].site->name, "aten::exp");
  EXPECT_EQ(cause.origins[0].phase, trace::Phase::forward);
}

TEST(RootCause, ADerivativeBornInBackwardKnowsItsForwardPartner) {
  json run = line_of_ops();
  run["steps"] = {good_step, bad_step};
  run["nonfinite"] = {event(1, "c", "producer"), event(1, "exp_mul", "producer")};
  run["nonfinite_gradients"] = {{{"step", 1}, {"parameter", "w"}, {"nan", 16}}};
  const RootCause cause = root_cause_of(run);
  ASSERT_EQ(cause.origins.size(), 1U);
  EXPECT_EQ(cause.origins[0].phase, trace::Phase::backward);
  ASSERT_NE(cause.origins[0].forward_event, nullptr);
  EXPECT_EQ(cause.origins[0].forward_event->site, 2);
}

TEST(RootCause, KeepsWhatReachedNothingApart) {
  json run = line_of_ops();
  run["steps"] = {good_step, good_step};
  run["nonfinite"] = {event(1, "other", "producer")};
  const RootCause cause = root_cause_of(run);
  EXPECT_TRUE(cause.origins.empty());
  ASSERT_EQ(cause.unreached.size(), 1U);
  EXPECT_EQ(cause.unreached[0]->site, 4);
}

TEST(Intent, FollowsInfinitiesThatAreMeant) {
  json run = line_of_ops();
  run["sites"][0] = {{"id", "a"},
                     {"op", "aten::masked_fill_"},
                     {"scalars", {"-inf"}},
                     {"in", {"float16[4,4]"}},
                     {"out", {"float16[4,4]"}}};
  const auto stats = [](const char* kind, int count) {
    return json{{"type", "float16[4,4]"}, {kind, count}, {"count", 16}};
  };
  json from_a = stats("-inf", 4);
  from_a["type"] = "float16[4,4] from=a";
  json from_b = stats("-inf", 4);
  from_b["type"] = "float16[4,4] from=b";
  run["nonfinite"] = {
      {{"step", 0},
       {"site", "a"},
       {"kind", "producer"},
       {"in", {{{"type", "float16[4,4]"}, {"looked_at", false}}}},
       {"out", {stats("-inf", 4)}}},
      {{"step", 0}, {"site", "b"}, {"kind", "propagator"}, {"in", {from_a}}, {"out", {stats("-inf", 4)}}},
      {{"step", 0}, {"site", "c"}, {"kind", "propagator"}, {"in", {from_b}}, {"out", {stats("nan", 4)}}},
      {{"step", 0},
       {"site", "other"},
       {"kind", "propagator"},
       {"in", {stats("+inf", 1)}},
       {"out", {stats("+inf", 1)}}}};
  const trace::Trace trace = testing::trace_from_json(run);
  const TraceView view(trace);
  EXPECT_THAT(judge_intent(view, view.nonfinite_events(0)),
              ::testing::ElementsAre(Intent::intended, Intent::intended, Intent::born, Intent::fault));
}

TEST(Evidence, JudgesAnOverflowByReplayElseByWhatIsPossible) {
  trace::NonfiniteEvent event;
  event.kind = trace::OriginKind::producer;
  trace::WitnessTensor input;
  input.type.dtype = trace::DType::float16;
  input.looked_at = true;
  event.inputs = {input};
  EXPECT_EQ(judge_overflow(event, trace::DType::float16, 1e6), Claim::supported);
  EXPECT_EQ(judge_overflow(event, trace::DType::float16, 1e3), Claim::none);
  EXPECT_EQ(judge_overflow(event, trace::DType::float16, std::nullopt), Claim::plausible);
  EXPECT_EQ(judge_overflow(event, trace::DType::bfloat16, 1e6), Claim::none);
  event.replay = {true, "fp32", true, 70000, ""};
  EXPECT_EQ(judge_overflow(event, trace::DType::float16, 1e3), Claim::proven);
  event.replay.absmax = 65504;
  EXPECT_EQ(judge_overflow(event, trace::DType::float16, 1e6), Claim::none);
  event.replay.finite = false;
  EXPECT_EQ(judge_overflow(event, trace::DType::float16, 1e6), Claim::none);
  event.replay.done = false;
  event.inputs[0].stats.count = 4;
  event.inputs[0].stats.nan = 1;
  EXPECT_EQ(judge_overflow(event, trace::DType::float16, 1e6), Claim::none);
}

trace::NonfiniteEvent with_shapes(const std::vector<std::vector<std::int64_t>>& inputs,
                                  const std::vector<std::int64_t>& output) {
  trace::NonfiniteEvent event;
  for (const auto& shape : inputs) {
    event.inputs.emplace_back();
    event.inputs.back().type = {.dtype = trace::DType::float16, .shape = shape, .device = {}};
  }
  event.outputs.emplace_back();
  event.outputs.back().type = {.dtype = trace::DType::float16, .shape = output, .device = {}};
  return event;
}

std::optional<std::int64_t> inner(const char* name, const std::vector<std::vector<std::int64_t>>& inputs) {
  trace::Site site;
  site.name = name;
  return inner_dimension(site, with_shapes(inputs, {1}));
}

TEST(Evidence, CountsTheProductsThatAreSummed) {
  EXPECT_EQ(inner("aten::mm", {{3, 7}, {7, 5}}), 7);
  EXPECT_EQ(inner("aten::linear", {{2, 9, 768}, {3072, 768}}), 768);
  EXPECT_EQ(inner("aten::addmm", {{5}, {3, 7}, {7, 5}}), 7);
  EXPECT_EQ(inner("aten::addmm", {{3, 5}, {3, 7}, {7, 5}}), 7);
  EXPECT_EQ(inner("aten::baddbmm", {{2, 3, 5}, {2, 3, 11}, {2, 11, 5}}), 11);
  EXPECT_EQ(inner("aten::conv2d", {{8, 16, 32, 32}, {64, 16, 3, 3}, {64}}), 144);
  EXPECT_EQ(inner("aten::convolution_backward", {{8, 16, 32, 32}, {64, 16, 3, 3}}), std::nullopt);
  EXPECT_EQ(inner("aten::dot", {{4}, {4}}), std::nullopt);
}

TEST(Evidence, CountsTheTermsOfAReduction) {
  trace::Site site;
  site.name = "aten::sum";
  EXPECT_EQ(reduction_terms(site, with_shapes({{512, 512}}, {})), 262144);
  EXPECT_EQ(reduction_terms(site, with_shapes({{512, 512}}, {512})), 512);
  site.name = "aten::cumsum";
  trace::NonfiniteEvent running = with_shapes({{2, 8192, 64}}, {2, 8192, 64});
  running.scalars = {-2};
  EXPECT_EQ(reduction_terms(site, running), 8192);
  running.scalars = {9};
  EXPECT_EQ(reduction_terms(site, running), std::nullopt);
}

}  // namespace
}  // namespace ampscope::analyzers
