// Statistics of normally distributed values, for fixtures that only say how large gradients are.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>

#include "trace/tensor_stats.h"

namespace ampscope::analyzers::testing {

/// The histogram of `count` values of a normal distribution around 0 with the standard deviation 2^`log2_sd`, as it is
/// after rounding to a type whose smallest positive value is 2^`smallest`. What rounds to zero is returned.
inline double add_gaussian(trace::TensorStats& stats, double log2_sd, double count, std::optional<int> smallest) {
  const double sd = std::exp2(log2_sd);
  const auto below = [&](double x) { return std::erf(x / (sd * std::numbers::sqrt2)); };
  const int top = static_cast<int>(std::ceil(log2_sd)) + 3;
  const int bottom = smallest.value_or(static_cast<int>(std::floor(log2_sd)) - 30);
  // Half a unit is where rounding begins to give the smallest value instead of zero.
  const auto border = [&](int exponent) {
    const double unit = std::exp2(bottom);
    return smallest && exponent - bottom <= 10 ? (exponent == bottom ? unit / 2 : std::exp2(exponent) - unit / 2)
                                               : std::exp2(exponent);
  };
  for (int exponent = bottom; exponent < top; ++exponent) {
    const double expected = count * (below(border(exponent + 1)) - below(border(exponent)));
    const auto rounded = static_cast<std::uint64_t>(std::llround(expected));
    if (rounded > 0) stats.exponents.add(exponent, rounded);
  }
  return smallest ? count * below(border(bottom)) : 0;
}

}  // namespace ampscope::analyzers::testing
