#include "probe/stats/rounding_error.h"

#include <algorithm>
#include <cmath>

namespace ampscope::stats {
namespace {

double ulp(double value, const trace::FloatLimits& limits) noexcept {
  const double magnitude = std::abs(value);
  const int exponent = magnitude > 0 ? std::ilogb(magnitude) : limits.smallest_normal;
  return std::ldexp(1.0, std::clamp(exponent, limits.smallest_normal, limits.largest) - limits.significand_bits + 1);
}

}  // namespace

double ulp(double value, trace::DType dtype) noexcept {
  return ulp(value, trace::float_limits(dtype));
}

void compare(std::span<const double> results, std::span<const double> reference, trace::RoundingErrors& into) noexcept {
  const trace::FloatLimits limits = trace::float_limits(into.dtype);
  const std::size_t count = std::min(results.size(), reference.size());
  for (std::size_t i = 0; i < count; ++i) {
    const double expected = reference[i];
    if (!std::isfinite(expected)) continue;
    if (!std::isfinite(results[i])) {
      ++into.nonfinite;
      continue;
    }
    const double error = std::abs(results[i] - expected);
    const double in_ulp = error / ulp(expected, limits);
    ++into.elements;
    into.sum_ulp += in_ulp;
    into.above_one_ulp += in_ulp > 1 ? 1 : 0;
    if (in_ulp > into.max_ulp) {
      into.max_ulp = in_ulp;
      into.worst_value = results[i];
      into.worst_reference = expected;
    }
    into.squared_error += error * error;
    into.squared_reference += expected * expected;
  }
}

void merge(trace::RoundingErrors& into, const trace::RoundingErrors& other) noexcept {
  into.elements += other.elements;
  into.nonfinite += other.nonfinite;
  into.above_one_ulp += other.above_one_ulp;
  into.sum_ulp += other.sum_ulp;
  into.squared_error += other.squared_error;
  into.squared_reference += other.squared_reference;
  if (other.max_ulp > into.max_ulp) {
    into.max_ulp = other.max_ulp;
    into.worst_value = other.worst_value;
    into.worst_reference = other.worst_reference;
  }
}

}  // namespace ampscope::stats
