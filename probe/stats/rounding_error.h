// How far results lie from what higher precision makes of the same inputs.
#pragma once

#include <cstddef>
#include <span>

#include "trace/model.h"

namespace ampscope::stats {

/// Distance between neighbouring values of `dtype` at `value`: 2^(max(e, e_min) - p + 1), where 2^e <= |value| <
/// 2^(e+1), e_min is the exponent of the smallest normal value and p the bits of the significand (Goldberg 1991,
/// section 1.2, with the subnormal range at the spacing of e_min). Values beyond the largest finite one have the
/// spacing at that one.
[[nodiscard]] double ulp(double value, trace::DType dtype) noexcept;

/// Adds the comparison of results of type `into.dtype` with a reference. Both are given in fp64, which holds every
/// fp16, bf16 and fp32 value. Elements that are non-finite in the reference count nowhere; those non-finite in the
/// result alone only in `nonfinite`: there the type's range was exceeded.
void compare(std::span<const double> results, std::span<const double> reference, trace::RoundingErrors& into) noexcept;

/// Adds `other`, of the same site and types.
void merge(trace::RoundingErrors& into, const trace::RoundingErrors& other) noexcept;

}  // namespace ampscope::stats
