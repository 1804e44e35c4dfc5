#include "analyzers/scaler/skips.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analyzers/core/trace_view.h"
#include "tests/analyzers/fixture.h"

namespace ampscope::analyzers {
namespace {

/// One character an update: '.' good, 'x' skipped; `interval` is growth_interval.
trace::Trace run_of(const std::string& updates, int interval = 2000, double init = 65536) {
  nlohmann::json steps = nlohmann::json::array();
  for (const char update : updates) {
    const bool skipped = update == 'x';
    steps.push_back({{"do",
                      {"backward scaled optimizers=0",
                       skipped ? "optimizer_skip object=0" : "optimizer_step object=0 through_scaler",
                       skipped ? "scaler_update found_inf" : "scaler_update"}}});
  }
  return testing::trace_from_json(
      {{"optimizers", {"SGD"}}, {"steps", steps}, {"scaler", {{"interval", interval}, {"init", init}}}});
}

SkipAnalysis skips_of(const trace::Trace& trace, const SkipLimits& limits = {}) {
  const TraceView view(trace);
  return analyze_skips(view, 0, limits);
}

std::string times(int count, const std::string& text) {
  std::string result;
  for (int i = 0; i < count; ++i)
    result += text;
  return result;
}

std::string good(int count) {
  return std::string(static_cast<std::size_t>(count), '.');
}

TEST(Skips, FirstOnesSettleTheScale) {
  const SkipAnalysis skips = skips_of(run_of("xxxx" + good(60)));
  EXPECT_EQ(skips.count(SkipKind::settling), 4);
  EXPECT_EQ(skips.settled_scale, 4096);
  EXPECT_EQ(skips.settled_step, 4);
  EXPECT_FALSE(skips.collapsed);
  EXPECT_TRUE(skips.at_step(2)->by_design());
  EXPECT_EQ(skips.at_step(20), nullptr);
}

TEST(Skips, GoodStepsInBetweenStillBelongToSettling) {
  const SkipAnalysis skips = skips_of(run_of("xx...x......x" + good(40)));
  EXPECT_EQ(skips.count(SkipKind::settling), 4);
  EXPECT_EQ(skips.settled_scale, 4096);
}

TEST(Skips, ShortRunsSettleByTheirLongestStretch) {
  const SkipAnalysis skips = skips_of(run_of("xxx....."));
  EXPECT_EQ(skips.count(SkipKind::settling), 3);
  EXPECT_EQ(skips.settled_step, 3);
}

TEST(Skips, ProbesAreAtLeastAGrowthIntervalApart) {
  const SkipAnalysis skips = skips_of(run_of(times(8, good(20) + "x") + good(5), 20));
  EXPECT_EQ(skips.count(SkipKind::probe), 8);
  EXPECT_FALSE(skips.collapsed);
}

TEST(Skips, AScalerThatTriesOftenSettlesAsWell) {
  const SkipAnalysis skips = skips_of(run_of("xxxx" + times(6, good(10) + "x"), 10));
  EXPECT_EQ(skips.settled_step, 4);
  EXPECT_EQ(skips.count(SkipKind::settling), 4);
  EXPECT_EQ(skips.count(SkipKind::probe), 6);
}

TEST(Skips, FewLateOnesAreIsolated) {
  const SkipAnalysis skips = skips_of(run_of(good(86) + "x" + good(144) + "x" + good(203)));
  EXPECT_EQ(skips.count(SkipKind::isolated), 2);
  EXPECT_FALSE(skips.collapsed);
}

TEST(Skips, ManyCloseTogetherCollapse) {
  const SkipAnalysis skips = skips_of(run_of(good(30) + times(20, "x..")));
  EXPECT_TRUE(skips.collapsed);
  EXPECT_TRUE(skips.hopeless);
  EXPECT_EQ(skips.count(SkipKind::collapse), 20);
  EXPECT_NEAR(skips.skip_period, 3, 1e-9);
}

TEST(Skips, ACollapseThatStopsInTimeIsNotHopeless) {
  const SkipAnalysis skips = skips_of(run_of(good(30) + times(6, "x" + good(10)) + good(60)));
  EXPECT_TRUE(skips.collapsed);
  EXPECT_FALSE(skips.hopeless);
}

TEST(Skips, LimitsCanBeSet) {
  EXPECT_FALSE(skips_of(run_of(good(30) + times(6, "x" + good(10)) + good(60)), {20, 7, 3}).collapsed);
}

TEST(Skips, ARunOfNothingButSkipsCollapses) {
  const SkipAnalysis skips = skips_of(run_of(std::string(12, 'x')));
  EXPECT_TRUE(skips.collapsed);
  EXPECT_TRUE(skips.hopeless);
  EXPECT_EQ(skips.settled_step, trace::none);
}

TEST(Skips, AVeryLargeFirstScaleMayTakeManySkips) {
  const SkipAnalysis skips = skips_of(run_of(std::string(12, 'x') + good(50), 2000, 16777216.0));
  EXPECT_EQ(skips.count(SkipKind::settling), 12);
  EXPECT_FALSE(skips.collapsed);
}

TEST(Skips, FallingToZeroIsACollapse) {
  const SkipAnalysis skips = skips_of(run_of(std::string(170, 'x')));
  EXPECT_TRUE(skips.collapsed);
  EXPECT_EQ(skips.last_scale, 0);
}

TEST(Skips, MoreSkipsThanStepsForGoodMakeASawTooth) {
  const SkipAnalysis skips = skips_of(run_of(times(20, ".xxx"), 1));
  EXPECT_TRUE(skips.saw_tooth);
  EXPECT_FALSE(skips.collapsed);
  EXPECT_DOUBLE_EQ(skips.skip_period, 4.0 / 3);
  // As many as the scale has grown is what the smallest interval means.
  EXPECT_FALSE(skips_of(run_of(times(40, ".x"), 1)).saw_tooth);
  // Too short to tell, and many at the beginning alone.
  EXPECT_FALSE(skips_of(run_of(times(8, ".xxx"), 1)).saw_tooth);
  EXPECT_FALSE(skips_of(run_of(times(10, ".xxx") + good(40), 1)).saw_tooth);
}

TEST(Skips, NoUpdatesNoSkips) {
  const trace::Trace trace = testing::trace_from_json({{"scalers", {"torch.amp.GradScaler"}}});
  const SkipAnalysis skips = skips_of(trace);
  EXPECT_EQ(skips.updates, 0);
  EXPECT_TRUE(skips.skips.empty());
}

}  // namespace
}  // namespace ampscope::analyzers
