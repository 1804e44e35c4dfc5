#include "analyzers/core/rounding.h"

#include <cmath>
#include <limits>

namespace ampscope::analyzers {

double round_to(trace::DType dtype, double value) noexcept {
  if (!trace::is_floating(dtype) || !std::isfinite(value) || value == 0) return value;
  const trace::FloatLimits limits = trace::float_limits(dtype);
  if (limits.significand_bits >= std::numeric_limits<double>::digits) return value;
  const int exponent = std::ilogb(value);
  // Spacing of the type's values here; below the smallest normal it no longer shrinks.
  const int spacing = std::max(exponent - limits.significand_bits + 1, limits.smallest_subnormal);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -spacing)), spacing);
  return std::abs(rounded) > limits.max ? std::copysign(std::numeric_limits<double>::infinity(), value) : rounded;
}

bool rounds_to_zero(trace::DType dtype, double value) noexcept {
  return value != 0 && round_to(dtype, value) == 0;
}

bool rounds_to_one(trace::DType dtype, double value) noexcept {
  constexpr double near = 0.01;
  const double magnitude = std::abs(value);
  return magnitude != 1 && std::abs(magnitude - 1) <= near && std::abs(round_to(dtype, value)) == 1;
}

}  // namespace ampscope::analyzers
