#include "probe/stats/rounding_error.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/stats/reference.h"

namespace ampscope::stats {
namespace {

using trace::DType;

class UlpOfHalf : public ::testing::TestWithParam<DType> {};

TEST_P(UlpOfHalf, IsTheDistanceToTheNextPattern) {
  const testing::Definition& format = testing::definition(GetParam());
  const std::uint64_t infinity = ((std::uint64_t{1} << format.exponent_bits) - 1) << format.fraction_bits;
  for (std::uint64_t bits = 0; bits + 1 < infinity; ++bits) {
    const double value = testing::decode(format, bits);
    const double spacing = testing::decode(format, bits + 1) - value;
    ASSERT_EQ(ulp(value, GetParam()), spacing) << bits;
    ASSERT_EQ(ulp(-value, GetParam()), spacing) << bits;
    // Between two neighbours it is still their distance.
    ASSERT_EQ(ulp(value + spacing / 3, GetParam()), spacing) << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, UlpOfHalf, ::testing::Values(DType::float16, DType::bfloat16));

TEST(Ulp, OfFloatIsTheDistanceToTheNextFloat) {
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()) & 0x7fffffffU);
    const float next = std::nextafter(value, std::numeric_limits<float>::infinity());
    if (!std::isfinite(value) || !std::isfinite(next)) continue;
    ASSERT_EQ(ulp(static_cast<double>(value), DType::float32), static_cast<double>(next) - static_cast<double>(value));
  }
}

TEST(Ulp, BeyondTheLargestValueIsTheSpacingThere) {
  EXPECT_EQ(ulp(1e30, DType::float16), 32);
  EXPECT_EQ(ulp(0, DType::float16), std::ldexp(1.0, -24));
}

trace::RoundingErrors compared(std::vector<double> results, std::vector<double> reference) {
  trace::RoundingErrors errors;
  errors.dtype = DType::float16;
  compare(results, reference, errors);
  return errors;
}

TEST(Compare, CountsInUnitsOfTheSpacingAtTheReference) {
  // Neighbours of 1 in fp16 are 2^-10 above, those of 2048 are 2 apart.
  const auto errors = compared({1 + std::ldexp(1.0, -10), 2048, 0.5}, {1, 2053, 0.5});
  EXPECT_EQ(errors.elements, 3);
  EXPECT_DOUBLE_EQ(errors.sum_ulp, 1 + 2.5);
  EXPECT_DOUBLE_EQ(errors.max_ulp, 2.5);
  EXPECT_EQ(errors.worst_value, 2048);
  EXPECT_EQ(errors.worst_reference, 2053);
  EXPECT_EQ(errors.above_one_ulp, 1);
  EXPECT_DOUBLE_EQ(errors.squared_error, std::ldexp(1.0, -20) + 25);
  EXPECT_DOUBLE_EQ(errors.squared_reference, 1 + 2053.0 * 2053.0 + 0.25);
}

TEST(Compare, NonfiniteValuesAreCountedApart) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto errors = compared({inf, 1, nan, nan, 2}, {70'000, inf, 3, nan, 2});
  EXPECT_EQ(errors.nonfinite, 2);  // 70 000 and 3; what is non-finite in the reference says nothing about the type.
  EXPECT_EQ(errors.elements, 1);
  EXPECT_EQ(errors.max_ulp, 0);
  EXPECT_TRUE(std::isfinite(errors.squared_reference));
}

TEST(Merge, IsTheComparisonOfAllElements) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> results(200);
  std::vector<double> reference(200);
  for (std::size_t i = 0; i < results.size(); ++i) {
    reference[i] = normal(random);
    results[i] = reference[i] * (1 + 1e-3 * normal(random));
  }
  const auto whole = compared(results, reference);
  auto merged = compared({results.begin(), results.begin() + 70}, {reference.begin(), reference.begin() + 70});
  merge(merged, compared({results.begin() + 70, results.end()}, {reference.begin() + 70, reference.end()}));
  EXPECT_EQ(merged.elements, whole.elements);
  EXPECT_EQ(merged.above_one_ulp, whole.above_one_ulp);
  EXPECT_EQ(merged.max_ulp, whole.max_ulp);
  EXPECT_EQ(merged.worst_value, whole.worst_value);
  EXPECT_NEAR(merged.sum_ulp, whole.sum_ulp, 1e-9 * whole.sum_ulp);
  EXPECT_NEAR(merged.squared_error, whole.squared_error, 1e-9 * whole.squared_error);
}

}  // namespace
}  // namespace ampscope::stats
