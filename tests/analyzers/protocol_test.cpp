#include "analyzers/core/protocol.h"

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/analyzers/fixture.h"

namespace ampscope::analyzers {
namespace {

using nlohmann::json;

struct Visit {
  trace::EventKind kind{};
  std::int64_t step = 0;
  GradientState first;
  friend bool operator==(const Visit&, const Visit&) = default;
};

/// Every event of every step, spans written out.
std::vector<Visit> visits(const trace::Trace& trace) {
  const TraceView view(trace);
  std::vector<std::vector<Visit>> by_step(static_cast<std::size_t>(view.steps()));
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    EXPECT_EQ(span.count, span.last - span.first + 1);
    for (std::int64_t step = span.first; step <= span.last; ++step) {
      by_step[static_cast<std::size_t>(step)].push_back({event.kind, step, before.of(0)});
    }
  });
  std::vector<Visit> all;
  for (const auto& step : by_step)
    all.insert(all.end(), step.begin(), step.end());
  return all;
}

TEST(Protocol, RunsOfEqualStepsGiveTheSameAsSingleSteps) {
  const std::vector<std::string> events = {
      "backward scaled optimizers=0", "backward optimizers=1",  "unscale object=0",
      "gradient_write scaled",        "gradient_clear",         "optimizer_step object=0",
      "optimizer_skip object=1",      "schedule_step object=0", "scale_read"};
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    json together = json::array();
    json single = json::array();
    for (int run = 0; run < 4; ++run) {
      json pattern = json::array();
      const auto length = 1 + random() % 5;
      for (std::size_t i = 0; i < length; ++i)
        pattern.push_back(events[random() % events.size()]);
      const auto times = 1 + random() % 6;
      together.push_back({{"times", times}, {"do", pattern}});
      for (std::size_t i = 0; i < times; ++i)
        single.push_back({{"do", pattern}});
    }
    const json objects = {{"optimizers", {"SGD", "Adam"}}, {"schedules", {"StepLR optimizer=1"}}};
    json a = objects;
    a["steps"] = together;
    json b = objects;
    b["steps"] = single;
    EXPECT_EQ(visits(testing::trace_from_json(a)), visits(testing::trace_from_json(b)));
  }
}

TEST(Protocol, FollowsGradientsFromBackwardToStep) {
  const trace::Trace trace =
      testing::trace_from_json({{"optimizers", {"SGD"}},
                                {"steps",
                                 {{{"do",
                                    {"backward scaled optimizers=0", "scale_read", "unscale object=0 found_inf",
                                     "optimizer_step object=0", "gradient_clear", "optimizer_step object=0"}}}}}});
  const TraceView view(trace);
  std::vector<GradientState> at_step;
  walk_protocol(view, [&](const StepSpan&, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == trace::EventKind::optimizer_step) at_step.push_back(before.of(0));
  });
  ASSERT_EQ(at_step.size(), 2U);
  EXPECT_TRUE(at_step[0].present && at_step[0].certain && at_step[0].scaled && at_step[0].unscaled);
  EXPECT_TRUE(at_step[0].scale_read && at_step[0].found_inf);
  EXPECT_FALSE(at_step[1].present);
}

TEST(Protocol, DoesNotGuessWhichOptimizerAFirstBackwardReached) {
  const trace::Trace trace = testing::trace_from_json(
      {{"optimizers", {"SGD", "Adam"}}, {"steps", {{{"do", {"backward scaled", "optimizer_step object=0"}}}}}});
  const TraceView view(trace);
  walk_protocol(view, [&](const StepSpan&, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind != trace::EventKind::optimizer_step) return;
    EXPECT_TRUE(before.of(0).present);
    EXPECT_FALSE(before.of(0).certain);
  });
}

TEST(Protocol, SpansCountAStepOnce) {
  StepSpan span;
  extend(span, {3, 3, 1});
  extend(span, {3, 3, 1});
  extend(span, {4, 9, 6});
  extend(span, {4, 9, 6});
  extend(span, {20, 20, 1});
  EXPECT_EQ(std::tuple(span.first, span.last, span.count), std::tuple(3, 20, 8));
}

}  // namespace
}  // namespace ampscope::analyzers
