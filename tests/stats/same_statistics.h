// What tests of several kernels for the same statistics share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "probe/stats/flat_stats.h"

namespace ampscope::stats::testing {

/// Equal bit by bit, but for sum_squares, which depends on the order of its summands.
inline void expect_same(const FlatStats& found, const FlatStats& expected, const std::string& what) {
  EXPECT_EQ(found.count, expected.count) << what;
  EXPECT_EQ(found.nan, expected.nan) << what;
  EXPECT_EQ(found.positive_infinity, expected.positive_infinity) << what;
  EXPECT_EQ(found.negative_infinity, expected.negative_infinity) << what;
  EXPECT_EQ(found.zero, expected.zero) << what;
  EXPECT_EQ(found.subnormal, expected.subnormal) << what;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(found.min), std::bit_cast<std::uint64_t>(expected.min)) << what;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(found.max), std::bit_cast<std::uint64_t>(expected.max)) << what;
  EXPECT_EQ(std::bit_cast<std::uint64_t>(found.absmax), std::bit_cast<std::uint64_t>(expected.absmax)) << what;
  EXPECT_EQ(0, std::memcmp(found.counts, expected.counts, sizeof found.counts)) << what << ": histogram";
  if (std::isfinite(expected.sum_squares)) {
    EXPECT_NEAR(found.sum_squares, expected.sum_squares, 1e-5 * expected.sum_squares) << what;
  } else {
    EXPECT_EQ(found.sum_squares, expected.sum_squares) << what;
  }
}

template <typename Bits>
std::vector<Bits> random_bits(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Bits> bits(count);
  for (Bits& value : bits)
    value = static_cast<Bits>(random());
  return bits;
}

}  // namespace ampscope::stats::testing
