#include "probe/stats/flat_stats.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/stats/kernels.h"
#include "tests/stats/reference.h"

namespace ampscope::stats::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FlatStatsTest, FreshIsEmpty) {
  const trace::TensorStats stats = to_tensor_stats(FlatStats{});
  EXPECT_EQ(stats.count, 0U);
  EXPECT_TRUE(stats.exponents.empty());
  EXPECT_EQ(stats.min, std::numeric_limits<double>::infinity());
  EXPECT_EQ(stats.max, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(stats.absmax, 0);
}

TEST(FlatStatsTest, HoldsEveryExponentOfADouble) {
  FlatStats stats;
  stats.add(FlatStats::lowest_exponent, 2);
  stats.add(FlatStats::highest_exponent, 3);
  EXPECT_EQ(stats.at(-1074), 2U);
  EXPECT_EQ(stats.at(1023), 3U);
  EXPECT_EQ(stats.at(0), 0U);
  const trace::TensorStats converted = to_tensor_stats(stats);
  EXPECT_EQ(converted.exponents.first, -1074);
  EXPECT_EQ(converted.exponents.last(), 1023);
  EXPECT_EQ(converted.exponents.total(), 5U);
}

TEST(FlatStatsTest, ConversionCutsZeroCountsAtTheEnds) {
  FlatStats stats;
  stats.add(-8, 0);
  stats.add(-3, 4);
  stats.add(-1, 5);
  stats.add(9, 0);
  const trace::TensorStats converted = to_tensor_stats(stats);
  EXPECT_EQ(converted.exponents.first, -3);
  EXPECT_THAT(converted.exponents.counts, ElementsAre(4, 0, 5));
}

TEST(FlatStatsTest, ResetMakesItFresh) {
  const double values[] = {0, 1, -1e300, 1e-310, NAN, INFINITY, -INFINITY};
  FlatStats used;
  accumulate(dense(trace::DType::float64, values, 7), used);
  used.reset();
  const FlatStats fresh;
  EXPECT_EQ(used.count, 0U);
  EXPECT_EQ(used.sum_squares, 0);
  for (int i = 0; i < FlatStats::exponents; ++i)
    ASSERT_EQ(used.counts[i], 0U) << i;
  accumulate(dense(trace::DType::float64, values, 7), used);
  EXPECT_THAT(difference(reference_stats(definition(trace::DType::float64), values, 7), used), IsEmpty());
}

TEST(FlatStatsTest, MergeIsTheStatisticsOfBoth) {
  const double all[] = {0, 1, -1e100, 1e-310, NAN, INFINITY, 3, 4, 5e-324, -INFINITY, -0.0};
  for (int split = 0; split <= 11; ++split) {
    FlatStats first;
    FlatStats second;
    accumulate(dense(trace::DType::float64, all, split), first);
    accumulate(dense(trace::DType::float64, all + split, 11 - split), second);
    merge(first, second);
    EXPECT_THAT(difference(reference_stats(definition(trace::DType::float64), all, 11), first), IsEmpty()) << split;
  }
}

TEST(FlatStatsTest, AgreesWithTheMergeOfTheTrace) {
  const float a[] = {1, -2, 0, 1e-40F, INFINITY};
  const float b[] = {NAN, 7e30F, -0.125F};
  FlatStats first;
  FlatStats second;
  accumulate(dense(trace::DType::float32, a, 5), first);
  accumulate(dense(trace::DType::float32, b, 3), second);
  trace::TensorStats expected = to_tensor_stats(first);
  expected.merge(to_tensor_stats(second));
  merge(first, second);
  EXPECT_THAT(difference(expected, first), IsEmpty());
}

TEST(FlatStatsTest, SumOfSquaresSaturates) {
  FlatStats stats;
  for (int i = 0; i < 3; ++i)
    stats.add_squares(0x1p1018);
  EXPECT_EQ(stats.sum_squares, 3 * 0x1p1018);
  for (int i = 0; i < 5; ++i)
    stats.add_squares(0x1p1018);
  EXPECT_TRUE(std::isinf(stats.sum_squares));
}

TEST(FlatStatsTest, DividesByAPowerOfTwoAsTheElementsThemselvesWould) {
  for (const int exponent : {16, 3, 0, -5, -70}) {
    std::vector<float> values = {0, 1.5F, -2.25F, 0x1p-100F, 0x1.8p-126F, 0x1p-149F, 40000.0F, NAN, -INFINITY};
    FlatStats divided;
    accumulate(dense(trace::DType::float32, values.data(), values.size()), divided);
    ASSERT_TRUE(divide_by_power_of_two(divided, exponent, -126));
    FlatStats expected;
    std::vector<double> wide;
    for (const float value : values)
      wide.push_back(std::ldexp(static_cast<double>(value), -exponent));
    accumulate(dense(trace::DType::float64, wide.data(), wide.size()), expected);
    expected.subnormal = 0;
    for (const double value : wide)
      expected.subnormal += value != 0 && std::abs(value) < 0x1p-126 ? 1U : 0U;
    EXPECT_THAT(difference(to_tensor_stats(expected), divided), IsEmpty()) << exponent;
  }
}

TEST(FlatStatsTest, DoesNotDivideOutOfTheRangeOfADouble) {
  const double values[] = {0x1p-1000, 1};
  FlatStats stats;
  accumulate(dense(trace::DType::float64, values, 2), stats);
  EXPECT_FALSE(divide_by_power_of_two(stats, 40, -1022));
  EXPECT_FALSE(divide_by_power_of_two(stats, -1024, -1022));
  EXPECT_EQ(stats.at(-1000), 1U);
  EXPECT_EQ(stats.max, 1);
}

}  // namespace
}  // namespace ampscope::stats::testing
