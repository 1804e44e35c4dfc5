#include "analyzers/core/trace_view.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/analyzers/fixture.h"

namespace ampscope::analyzers {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const char* const network = R"({
  "optimizers": ["SGD"], "scalers": ["torch.amp.GradScaler"],
  "parameters": ["fc.weight float32[8,4] optimizer=0"],
  "sites": [
    {"id": "fc", "op": "aten::linear", "at": "model/net.py:7", "module": "net.fc", "autocast": "float16",
     "in": ["float32[2,4]", "float32[8,4] parameter=fc.weight"], "out": ["float16[2,8] grad"], "compute": "float16", "calls": 9},
    {"id": "addmm", "op": "aten::addmm", "parent": "fc", "in": ["float16[2,4]"], "out": ["float16[2,8]"], "calls": 9},
    {"id": "loss", "op": "aten::mean", "at": "train.py:9", "in": ["float16[2,8] from=fc"], "out": ["float16[]"]},
    {"id": "scaling", "op": "aten::mul", "in": ["float16[] from=loss"], "out": ["float16[]"]},
    {"id": "node", "kind": "backward_node", "op": "AddmmBackward0", "phase": "backward", "forward": "addmm", "at": "train.py:12"},
    {"id": "mm", "op": "aten::mm", "phase": "backward", "parent": "node", "in": ["float16[8,2]", "float16[2,4]"], "out": ["float16[8,4]"]},
    {"id": "metric", "op": "aten::sum", "in": ["float16[2,8] from=addmm"], "out": ["float16[]"]}
  ],
  "steps": [
    {"times": 2, "do": ["scale_loss site=scaling", "backward scaled site=scaling optimizers=0", "unscale object=0 found_inf", "optimizer_skip object=0", "scaler_update found_inf"]},
    {"times": 5, "do": ["scale_loss site=scaling", "backward scaled site=scaling optimizers=0", "unscale object=0", "optimizer_step object=0 through_scaler", "scaler_update"]}
  ],
  "gradients": [{"parameter": "fc.weight", "steps": [2, 2], "scale": 16384, "values": {"exponents": {"0": 4}, "sum_squares": 25}},
                {"parameter": "fc.weight", "steps": [3, 6], "scale": 16384, "values": {"exponents": {"0": 4}, "sum_squares": 9}}]
})";

class TraceViewTest : public ::testing::Test {
 protected:
  trace::Trace trace_ = testing::trace_from_json(json::parse(network));
  TraceView view_{trace_};
};

TEST_F(TraceViewTest, LooksUpByIdAndSurvivesUnknownOnes) {
  EXPECT_EQ(view_.site(0)->name, "aten::linear");
  EXPECT_EQ(view_.site(trace::none), nullptr);
  EXPECT_EQ(view_.site(700), nullptr);
  EXPECT_EQ(view_.parameter(0)->name, "fc.weight");
  EXPECT_EQ(view_.optimizer(3), nullptr);
  EXPECT_EQ(view_.totals(-5).calls, 0);
  EXPECT_THAT(view_.events(99), IsEmpty());
  EXPECT_THAT(view_.children(-1), IsEmpty());
  EXPECT_THAT(view_.producers(50), IsEmpty());
}

TEST_F(TraceViewTest, ExpandsPatternsToSteps) {
  EXPECT_EQ(view_.steps(), 7);
  EXPECT_EQ(view_.events(1).size(), 5U);
  EXPECT_EQ(view_.events(1)[3].kind, trace::EventKind::optimizer_skip);
  EXPECT_EQ(view_.events(6)[3].kind, trace::EventKind::optimizer_step);
  EXPECT_THAT(view_.skipped_steps(), ElementsAre(0, 1));
  EXPECT_EQ(view_.count_events(trace::EventKind::backward), 7);
}

TEST_F(TraceViewTest, AFusedOptimizerSkipsInItsKernel) {
  const trace::Trace trace = testing::trace_from_json(
      {{"optimizers", {"AdamW fused"}},
       {"steps",
        {{{"do",
           {"backward scaled optimizers=0", "optimizer_step object=0 fused through_scaler",
            "scaler_update found_inf"}}},
         {{"do",
           {"backward scaled optimizers=0", "optimizer_step object=0 fused through_scaler", "scaler_update"}}}}}});
  EXPECT_THAT(TraceView(trace).skipped_steps(), ElementsAre(0));
}

TEST_F(TraceViewTest, KnowsTheScaleOfEveryStep) {
  EXPECT_EQ(view_.scale_at(0), 65536);
  EXPECT_EQ(view_.scale_at(1), 32768);
  EXPECT_EQ(view_.scale_at(4), 16384);
  EXPECT_EQ(view_.scale_at(100), 16384);
  EXPECT_EQ(view_.scale_at(0, 5), std::nullopt);
  EXPECT_TRUE(view_.scaled());
}

TEST_F(TraceViewTest, FollowsTensorsThroughTheLevelsOfCompositeOperators) {
  EXPECT_THAT(view_.producers(2), ElementsAre(0));
  // What the inner operator made is what the outer one returned.
  EXPECT_THAT(view_.consumers(0), ElementsAre(2, 6));
  EXPECT_THAT(view_.consumers(1), ElementsAre(2, 6));
  const std::vector<bool> before_loss = view_.ancestors(3);
  EXPECT_TRUE(before_loss[0] && before_loss[1] && before_loss[2] && before_loss[3]);
  EXPECT_FALSE(before_loss[6]);
  EXPECT_EQ(view_.outermost_op(1)->id, 0);
}

TEST_F(TraceViewTest, LinksBackwardToForward) {
  EXPECT_EQ(view_.backward_node(5)->id, 4);
  EXPECT_EQ(view_.forward_of(5)->id, 1);
  EXPECT_THAT(view_.backward_nodes(1), ElementsAre(4));
  EXPECT_EQ(view_.backward_node(0), nullptr);
  EXPECT_EQ(view_.module_of(5), "net.fc");
}

TEST_F(TraceViewTest, TellsTheLossAndItsScaling) {
  EXPECT_THAT(view_.loss_sites(), ElementsAre(3));
  EXPECT_TRUE(view_.is_loss_site(3));
  EXPECT_TRUE(view_.is_scaling_site(3));
  EXPECT_FALSE(view_.is_scaling_site(2));
}

TEST_F(TraceViewTest, SaysWhatRanInWhichPrecision) {
  EXPECT_EQ(view_.precision(), "fp16 autocast");
  EXPECT_TRUE(view_.autocast_used(trace::DType::float16));
  EXPECT_FALSE(view_.autocast_used(trace::DType::bfloat16));
  ASSERT_EQ(view_.forward_precision().size(), 1U);
  EXPECT_EQ(view_.forward_precision()[0].calls, 9);  // The composite operator and the one inside it are one.
}

TEST_F(TraceViewTest, TellsPrecisionFromWhatWasObserved) {
  const auto precision = [](const char* parameters, const char* site) {
    json object = {{"parameters", {parameters}}};
    object["sites"] = json::array({json::parse(site)});
    const trace::Trace trace = testing::trace_from_json(object);
    return TraceView(trace).precision();
  };
  EXPECT_EQ(precision("w float32[2,2]", R"({"op": "aten::mm", "out": ["float32[2,2]"]})"), "fp32");
  // Autocast was on, but nothing was computed in its type.
  EXPECT_EQ(precision("w float32[2,2]", R"({"op": "aten::mm", "autocast": "float16", "out": ["float32[2,2]"]})"),
            "fp32");
  EXPECT_EQ(precision("w float16[2,2]", R"({"op": "aten::mm", "out": ["float16[2,2]"]})"), "fp16 weights");
  EXPECT_EQ(precision("w float32[2,2]", R"({"op": "aten::mm", "out": ["bfloat16[2,2]"]})"),
            "bf16 by casts of the program");
  EXPECT_EQ(precision("w float64[2,2]", R"({"op": "aten::relu", "out": ["float64[2,2]"]})"), "fp64");
}

TEST_F(TraceViewTest, GivesTheGradientNormOfStepsThatWereLookedAtAlone) {
  EXPECT_EQ(view_.gradient_norm(2), 5);
  EXPECT_EQ(view_.gradient_norm(2, 0), 5);
  EXPECT_EQ(view_.gradient_norm(2, 1), std::nullopt);
  EXPECT_EQ(view_.gradient_norm(4), std::nullopt);
  EXPECT_EQ(view_.gradients(0).size(), 2U);
}

TEST_F(TraceViewTest, WritesPathsAsTheUserKnowsThem) {
  EXPECT_EQ(view_.path("/project/run/model/net.py"), "model/net.py");
  EXPECT_EQ(view_.path("/usr/lib/python3/x.py"), "/usr/lib/python3/x.py");
  EXPECT_EQ(view_.path("/project/runner/x.py"), "/project/runner/x.py");
  EXPECT_EQ(view_.path("relative.py"), "relative.py");
  EXPECT_EQ(view_.describe(0), "model/net.py:7 net.fc aten::linear");
  // A backward operator is known by the line of its forward one, not by that of backward().
  EXPECT_EQ(view_.describe(5), "model/net.py:7 net.fc aten::mm");
  EXPECT_EQ(view_.describe(trace::none), "an operation that was not seen");
}

TEST(TraceView, ACircleOfParentsIsCut) {
  trace::Trace trace;
  trace.sites.resize(3);
  for (std::int64_t i = 0; i < 3; ++i) {
    trace.sites[static_cast<std::size_t>(i)].id = i;
    trace.sites[static_cast<std::size_t>(i)].parent = (i + 1) % 3;
  }
  const TraceView view(trace);
  EXPECT_NE(view.outermost_op(0), nullptr);
  EXPECT_FALSE(view.describe(1).empty());
}

TEST(TraceView, ReferencesIntoNothingAreHarmless) {
  trace::Trace trace;
  trace.sites.resize(1);
  trace.sites[0].id = 0;
  trace.sites[0].parent = 99;
  trace.sites[0].forward_site = 99;
  trace.sites[0].inputs.push_back(
      {.dtype = trace::DType::float16, .shape = {}, .device = {}, .parameter = 99, .producer = 99});
  trace.step_runs.push_back({0, 3, 7});
  trace.gradients.push_back({});
  trace.gradients.back().parameter = 44;
  trace.scaler_updates.push_back({});
  trace.nonfinite_events.push_back({});
  trace.nonfinite_events.back().site = 12;
  const TraceView view(trace);
  EXPECT_EQ(view.steps(), 3);
  EXPECT_THAT(view.events(1), IsEmpty());
  EXPECT_THAT(view.producers(0), IsEmpty());
}

TEST(TraceView, OutcomesTellALossFromItsScaling) {
  const char* const text = R"({
    "optimizers": ["SGD"],
    "sites": [{"id": "loss", "op": "aten::mean", "in": ["float16[4]"], "out": ["float16[]"]},
              {"id": "scaling", "op": "aten::mul", "in": ["float16[] from=loss"], "out": ["float16[]"]}],
    "steps": [{"times": 2, "do": ["scale_loss site=scaling", "backward scaled site=scaling optimizers=0", "optimizer_skip object=0", "scaler_update found_inf"]}],
    "nonfinite": [{"step": 0, "site": "scaling", "kind": "producer", "in": [{"type": "float16[]", "count": 1, "absmax": 3}], "out": [{"type": "float16[]", "+inf": 1}]},
                  {"step": 1, "site": "loss", "kind": "producer", "in": [{"type": "float16[4]", "count": 4, "absmax": 3}], "out": [{"type": "float16[]", "nan": 1}]},
                  {"step": 1, "site": "scaling", "kind": "propagator", "in": [{"type": "float16[]", "nan": 1}], "out": [{"type": "float16[]", "nan": 1}]}],
    "series": [{"name": "loss", "steps": [0, 0], "count": 1, "nonfinite": 1}, {"name": "loss", "steps": [1, 1], "count": 1, "nonfinite": 1}]
  })";
  const trace::Trace trace = testing::trace_from_json(json::parse(text));
  const TraceView view(trace);
  EXPECT_FALSE(view.outcome(0).loss_nonfinite);  // 65536 times a finite loss.
  EXPECT_TRUE(view.outcome(0).gradients_nonfinite);
  EXPECT_TRUE(view.outcome(1).loss_nonfinite);
}

}  // namespace
}  // namespace ampscope::analyzers
