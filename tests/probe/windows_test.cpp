#include "probe/record/windows.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace ampscope::record {
namespace {

GradientSample sample(std::int64_t step, std::int64_t parameter, double scale) {
  GradientSample s;
  s.step = step;
  s.parameter = parameter;
  s.scale = scale;
  return s;
}

trace::TensorStats stats_of(std::uint64_t zeros, int exponent, std::uint64_t count, std::uint64_t nan = 0) {
  trace::TensorStats s;
  s.count = zeros + count + nan;
  s.zero = zeros;
  s.nan = nan;
  s.min = s.max = std::ldexp(1.0, exponent);
  s.absmax = std::ldexp(1.0, exponent);
  s.exponents.add(exponent, count);
  return s;
}

TEST(Windows, GrowWithTheRunSoThatTenTimesTheStepsCostFewMore) {
  const auto windows = [](std::int64_t steps) {
    std::int64_t count = 0;
    for (std::int64_t step = 0; step < steps; step += window_length(step))
      ++count;
    return count;
  };
  EXPECT_EQ(window_length(0), 1);
  EXPECT_EQ(windows(32), 32);
  EXPECT_LT(windows(10'000) - windows(1'000), 45);
  EXPECT_LT(windows(1'000'000), 230);
}

TEST(GradientWindows, MergeTheStepsOfAWindowExactly) {
  GradientWindows windows;
  const std::int64_t first = 64;  // Four steps long.
  for (std::int64_t step = first; step < first + 4; ++step) {
    windows.add(sample(step, 2, step == first ? 1024.0 : 2048.0), stats_of(3, -10, 5, step == first + 1 ? 1 : 0));
  }
  EXPECT_TRUE(windows.take(first + 3, false).empty()) << "the window is still running";
  const auto done = windows.take(first + 4, false);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].parameter, 2);
  EXPECT_EQ(done[0].first_step, first);
  EXPECT_EQ(done[0].last_step, first + 3);
  EXPECT_EQ(done[0].steps, 4);
  EXPECT_EQ(done[0].nonfinite_steps, 1);
  EXPECT_EQ(done[0].scale_min, 1024);
  EXPECT_EQ(done[0].scale_max, 2048);
  EXPECT_EQ(done[0].stats.count, 33U);
  EXPECT_EQ(done[0].stats.exponents.total(), 20U);
}

TEST(GradientWindows, SeveralGradientsOfOneStepAreOneStep) {
  GradientWindows windows;
  windows.add(sample(0, 0, 1), stats_of(1, 0, 1));
  windows.add(sample(0, 0, 1), stats_of(1, 0, 1));
  const auto done = windows.take(1, true);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].steps, 1);
  EXPECT_EQ(done[0].stats.count, 4U);
}

TEST(SeriesWindows, NonFiniteValuesAreCountedAndLeftOutOfTheMean) {
  SeriesWindows series;
  series.add("loss", -1, 0, 2);
  series.add("loss", -1, 0, std::numeric_limits<double>::infinity());
  series.add("loss", -1, 0, 4);
  const auto points = series.take(1, false);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].count, 3);
  EXPECT_EQ(points[0].nonfinite, 1);
  EXPECT_DOUBLE_EQ(points[0].mean, 3);
  EXPECT_DOUBLE_EQ(points[0].max, 4);
}

TEST(SeriesWindows, AWindowOfOnlyNaNSaysSo) {
  SeriesWindows series;
  series.add("loss", -1, 0, std::numeric_limits<double>::quiet_NaN());
  const auto points = series.take(0, true);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_TRUE(std::isnan(points[0].mean));
}

}  // namespace
}  // namespace ampscope::record
