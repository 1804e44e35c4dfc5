// Rounding of a constant to a narrow type, as a conversion does it: to nearest, ties to even.
#pragma once

#include "trace/tensor_stats.h"

namespace ampscope::analyzers {

/// `value` as `dtype` holds it: 0 where it is too small, ±infinity where it is too large. Unchanged for a type that is
/// no floating type.
[[nodiscard]] double round_to(trace::DType dtype, double value) noexcept;

/// A constant that is not zero and becomes zero in `dtype`.
[[nodiscard]] bool rounds_to_zero(trace::DType dtype, double value) noexcept;

/// A constant near 1 (or -1) that is not 1 and becomes 1 in `dtype`: 1 - 1e-7, 1 + 1e-9.
[[nodiscard]] bool rounds_to_one(trace::DType dtype, double value) noexcept;

}  // namespace ampscope::analyzers
