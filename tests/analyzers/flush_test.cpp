#include "analyzers/core/flush.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

#include "tests/analyzers/fixture.h"

namespace ampscope::analyzers {
namespace {

nlohmann::json cases() {
  std::ifstream file(AMPSCOPE_ANALYZER_DATA "/flush_cases.json");
  return nlohmann::json::parse(file);
}

// The reference is numpy's rounding of known values, made by data/make_flush_cases.py.
TEST(Flush, IsNearTheTruthWhereAllZerosWereFlushed) {
  int tested = 0;
  for (const auto& each : cases()) {
    const double flushed = each["flushed"].get<double>();
    if (each["zero"].get<double>() != flushed || flushed < 50) continue;
    SCOPED_TRACE(each["name"].get<std::string>());
    const FlushEstimate estimate(testing::stats_from_json(each), -24);
    EXPECT_GT(estimate.lost(), 0.5 * flushed);
    EXPECT_LE(estimate.lost(), flushed);  // All zeros are flushed values here, and there are no more than zeros.
    ++tested;
  }
  EXPECT_GE(tested, 10);
}

TEST(Flush, DoesNotTakeStructuralZerosForFlushedValues) {
  int tested = 0;
  for (const auto& each : cases()) {
    const double flushed = each["flushed"].get<double>();
    const double zeros = each["zero"].get<double>();
    if (zeros == flushed) continue;
    SCOPED_TRACE(each["name"].get<std::string>());
    const FlushEstimate estimate(testing::stats_from_json(each), -24);
    EXPECT_LT(estimate.lost(), 2 * flushed + 100);
    EXPECT_GE(estimate.lost(), 0.5 * flushed - 100);
    ++tested;
  }
  EXPECT_GE(tested, 5);
}

TEST(Flush, PredictsWhatALargerScaleWouldKeep) {
  int tested = 0;
  for (const auto& each : cases()) {
    const double flushed = each["flushed"].get<double>();
    if (flushed < 2000 || each["zero"].get<double>() != flushed) continue;
    SCOPED_TRACE(each["name"].get<std::string>());
    const FlushEstimate estimate(testing::stats_from_json(each), -24);
    const double raised = each["flushed_if_raised_by_4"].get<double>();
    EXPECT_LT(estimate.lost_if_raised(4), 2.5 * raised + 50);
    EXPECT_GT(estimate.lost_if_raised(4), raised / 2.5 - 50);
    EXPECT_DOUBLE_EQ(estimate.lost_if_raised(0), estimate.lost());
    ++tested;
  }
  EXPECT_GE(tested, 5);
}

TEST(Flush, SeesNoLossWhereTheEdgeDoesNotBind) {
  // Values far below the edge: whatever made them zero, it was not this type.
  EXPECT_EQ(FlushEstimate(testing::stats_from_json({{"gaussian", -20}, {"of", 100000}, {"zero", 5000}}), -24).lost(),
            0);
  EXPECT_EQ(FlushEstimate(testing::stats_from_json({{"zero", 1000}}), -24).lost(), 0);
  EXPECT_EQ(
      FlushEstimate(testing::stats_from_json({{"gaussian", -24}, {"of", 100000}, {"smallest", -24}, {"count", 0}}), -40)
          .lost(),
      0);
}

TEST(Flush, FollowsTheLossScale) {
  // The same gradients, recorded unscaled, after passing fp16 at a scale of 2^10.
  const auto stats = testing::stats_from_json({{"gaussian", -33}, {"of", 100000}, {"smallest", -34}});
  const auto unscaled = testing::stats_from_json({{"gaussian", -23}, {"of", 100000}, {"smallest", -24}});
  EXPECT_NEAR(FlushEstimate(stats, -34).lost(), FlushEstimate(unscaled, -24).lost(), 1);
}

}  // namespace
}  // namespace ampscope::analyzers
