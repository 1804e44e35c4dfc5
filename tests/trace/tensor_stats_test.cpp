#include "trace/tensor_stats.h"

#include <bit>
#include <cmath>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ampscope::trace {
namespace {

using testing::ElementsAre;

/// Limits found by decoding every bit pattern of a format by its definition.
struct SmallFormat {
  int exponent_bits;
  int fraction_bits;
  int bias;
  bool infinities;    // the top exponent holds infinities and NaN, as in IEEE 754
  bool nan_all_ones;  // only the pattern of all ones is NaN (the fn types)
};

FloatLimits by_definition(const SmallFormat& format) {
  FloatLimits limits{0, 0, 0, 0, format.fraction_bits + 1};
  double smallest = HUGE_VAL;
  double smallest_normal = HUGE_VAL;
  const int top = (1 << format.exponent_bits) - 1;
  const int fractions = 1 << format.fraction_bits;
  for (int exponent = 0; exponent <= top; ++exponent) {
    for (int fraction = 0; fraction < fractions; ++fraction) {
      if (exponent == top && (format.infinities || (format.nan_all_ones && fraction == fractions - 1))) continue;
      const double value = exponent == 0
                               ? std::ldexp(fraction, 1 - format.bias - format.fraction_bits)
                               : std::ldexp(fractions + fraction, exponent - format.bias - format.fraction_bits);
      if (value == 0) continue;
      smallest = std::min(smallest, value);
      if (exponent > 0) smallest_normal = std::min(smallest_normal, value);
      limits.max = std::max(limits.max, value);
    }
  }
  limits.smallest_subnormal = std::ilogb(smallest);
  limits.smallest_normal = std::ilogb(smallest_normal);
  limits.largest = std::ilogb(limits.max);
  return limits;
}

void expect_limits(DType dtype, const FloatLimits& expected) {
  const FloatLimits limits = float_limits(dtype);
  EXPECT_EQ(limits.smallest_subnormal, expected.smallest_subnormal) << dtype_name(dtype);
  EXPECT_EQ(limits.smallest_normal, expected.smallest_normal) << dtype_name(dtype);
  EXPECT_EQ(limits.largest, expected.largest) << dtype_name(dtype);
  EXPECT_EQ(limits.max, expected.max) << dtype_name(dtype);
  EXPECT_EQ(limits.significand_bits, expected.significand_bits) << dtype_name(dtype);
}

template <class T>
FloatLimits of_the_compiler() {
  using Limits = std::numeric_limits<T>;
  return {std::ilogb(Limits::denorm_min()), std::ilogb(Limits::min()), std::ilogb(Limits::max()),
          static_cast<double>(Limits::max()), Limits::digits};
}

TEST(FloatLimits, AgreeWithTheDefinitionOfEveryType) {
  expect_limits(DType::float16, by_definition({5, 10, 15, true, false}));
  expect_limits(DType::bfloat16, by_definition({8, 7, 127, true, false}));
  expect_limits(DType::float8_e4m3fn, by_definition({4, 3, 7, false, true}));
  expect_limits(DType::float8_e5m2, by_definition({5, 2, 15, true, false}));
  expect_limits(DType::float8_e4m3fnuz, by_definition({4, 3, 8, false, false}));
  expect_limits(DType::float8_e5m2fnuz, by_definition({5, 2, 16, false, false}));
  expect_limits(DType::float32, of_the_compiler<float>());
  expect_limits(DType::float64, of_the_compiler<double>());
}

TEST(FloatLimits, AreZeroForOtherTypes) {
  for (const DType dtype : {DType::unknown, DType::boolean, DType::uint8, DType::int64, DType::complex64, DType::other,
                            static_cast<DType>(200)}) {
    expect_limits(dtype, {});
    EXPECT_FALSE(is_floating(dtype));
  }
  EXPECT_TRUE(is_floating(DType::float8_e5m2fnuz));
}

TEST(DTypes, NamesLeadBackToTheType) {
  for (int i = 0; i <= static_cast<int>(DType::other); ++i) {
    EXPECT_EQ(dtype_from_name(dtype_name(static_cast<DType>(i))), static_cast<DType>(i));
  }
  EXPECT_EQ(dtype_from_name("torch.float16"), DType::unknown);
  EXPECT_EQ(dtype_from_name(""), DType::unknown);
  EXPECT_EQ(dtype_from_name(nullptr), DType::unknown);
  EXPECT_STREQ(dtype_name(static_cast<DType>(200)), "unknown");
  EXPECT_STREQ(dtype_name(DType::boolean), "bool");
  EXPECT_STREQ(short_dtype_name(DType::bfloat16), "bf16");
}

TEST(DTypes, SizesAndHalves) {
  EXPECT_EQ(element_size(DType::float8_e4m3fn), 1);
  EXPECT_EQ(element_size(DType::bfloat16), 2);
  EXPECT_EQ(element_size(DType::complex128), 16);
  EXPECT_EQ(element_size(DType::other), 0);
  EXPECT_TRUE(is_half(DType::float16));
  EXPECT_TRUE(is_half(DType::bfloat16));
  EXPECT_FALSE(is_half(DType::float8_e5m2));
}

TEST(ExponentHistogram, GrowsAtBothEnds) {
  ExponentHistogram histogram;
  EXPECT_EQ(histogram.total(), 0U);
  EXPECT_EQ(histogram.below(0), 0U);
  EXPECT_EQ(histogram.at_least(0), 0U);
  histogram.add(3, 0);
  EXPECT_TRUE(histogram.empty());
  histogram.add(0, 5);
  histogram.add(-2, 1);
  histogram.add(1, 2);
  histogram.add(-2, 1);
  EXPECT_EQ(histogram.first, -2);
  EXPECT_EQ(histogram.last(), 1);
  EXPECT_THAT(histogram.counts, ElementsAre(2, 0, 5, 2));
}

TEST(ExponentHistogram, AgreesWithAMapOfCounts) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::map<int, std::uint64_t> reference;
    ExponentHistogram first;
    ExponentHistogram second;
    for (auto* histogram : {&first, &second}) {
      for (auto i = random() % 6; i > 0; --i) {
        const int exponent = static_cast<int>(random() % 41) - 20;
        const std::uint64_t count = random() % 3;
        histogram->add(exponent, count);
        if (count != 0) reference[exponent] += count;
      }
    }
    first.merge(second);
    ASSERT_EQ(first.empty(), reference.empty());
    for (int exponent = -25; exponent <= 25; ++exponent) {
      std::uint64_t below = 0;
      std::uint64_t above = 0;
      for (const auto& [at, count] : reference)
        (at < exponent ? below : above) += count;
      ASSERT_EQ(first.below(exponent), below);
      ASSERT_EQ(first.at_least(exponent), above);
      ASSERT_EQ(first.total(), below + above);
    }
    if (reference.empty()) continue;
    ASSERT_EQ(first.first, reference.begin()->first);
    ASSERT_EQ(first.last(), reference.rbegin()->first);
    ASSERT_NE(first.counts.front(), 0U);
    ASSERT_NE(first.counts.back(), 0U);
  }
}

TEST(ExponentHistogram, MergesWithItself) {
  ExponentHistogram histogram;
  histogram.add(-3, 4);
  histogram.add(2, 1);
  histogram.merge(histogram);
  EXPECT_EQ(histogram.first, -3);
  EXPECT_THAT(histogram.counts, ElementsAre(8, 0, 0, 0, 0, 2));
}

TEST(TensorStats, NothingSeenYet) {
  const TensorStats stats;
  EXPECT_FALSE(stats.has_finite());
  EXPECT_EQ(stats.nonfinite(), 0U);
  EXPECT_GT(stats.min, stats.max);
}

TEST(TensorStats, MergeAddsCountsAndWidensRanges) {
  TensorStats stats;
  stats.count = 10;
  stats.nan = 1;
  stats.positive_infinity = 2;
  stats.negative_infinity = 3;
  stats.zero = 1;
  stats.subnormal = 1;
  stats.min = -2;
  stats.max = 1;
  stats.absmax = 2;
  stats.sum_squares = 5;
  stats.exponents.add(1, 3);
  TensorStats other;
  other.count = 4;
  other.zero = 2;
  other.min = 0;
  other.max = 3;
  other.absmax = 3;
  other.sum_squares = 9;
  other.exponents.add(0, 1);
  stats.merge(other);
  EXPECT_EQ(stats.count, 14U);
  EXPECT_EQ(stats.nan, 1U);
  EXPECT_EQ(stats.infinite(), 5U);
  EXPECT_EQ(stats.nonfinite(), 6U);
  EXPECT_TRUE(stats.has_finite());
  EXPECT_EQ(stats.zero, 3U);
  EXPECT_EQ(stats.subnormal, 1U);
  EXPECT_EQ(stats.min, -2);
  EXPECT_EQ(stats.max, 3);
  EXPECT_EQ(stats.absmax, 3);
  EXPECT_EQ(stats.sum_squares, 14);
  EXPECT_THAT(stats.exponents.counts, ElementsAre(1, 3));
  stats.merge(TensorStats{});
  EXPECT_EQ(stats.min, -2);
  EXPECT_EQ(stats.count, 14U);
}

}  // namespace
}  // namespace ampscope::trace
