// Computes an op again on its own inputs in higher precision, to tell a fault of the precision from one of the
// mathematics.
#pragma once

#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

inline constexpr at::ScalarType precision_unknown = at::ScalarType::Undefined;

struct WideCall {
  std::vector<c10::IValue> results;
  at::ScalarType precision = precision_unknown;  ///< what it was computed in
  std::string refused;                           ///< why it was not done; empty when it was
};

/// Calls the op of `frame` again on copies of its arguments in `precision` (unknown: the next that is wider than any of
/// them). For the callers below, inside `Unobserved`; throws what the op throws.
[[nodiscard]] WideCall call_in(at::ScalarType precision, const Frame& frame, std::int64_t most_elements);

/// Runs the op of `frame` in fp32 (fp64 when its inputs are fp32 already). Nothing observable changes: no gradient, no
/// autocast, no generator, no other observer; ops that write to their arguments, draw random numbers, are of another
/// library or too large are not run, and the result says why.
[[nodiscard]] trace::Replay replay(const Frame& frame) noexcept;

/// Of a multiplication that had a non-finite factor: how many non-finite elements of its result stand where the other
/// factor is exactly zero. Only when all of them do; 0 otherwise, and where it cannot be told.
[[nodiscard]] std::int64_t nonfinite_times_zero(const Frame& frame, c10::ArrayRef<c10::IValue> outputs) noexcept;

}  // namespace ampscope::observe
