// Computes an op again on its own inputs in higher precision, to tell a fault of the precision from one of the
// mathematics.
#pragma once

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Runs the op of `frame` in fp32 (fp64 when its inputs are fp32 already). Nothing observable changes: no gradient, no
/// autocast, no generator, no other observer; ops that write to their arguments, draw random numbers or are too large
/// are not run, and the result says why.
[[nodiscard]] trace::Replay replay(const Frame& frame) noexcept;

/// Of a multiplication that had a non-finite factor: how many non-finite elements of its result stand where the other
/// factor is exactly zero. Only when all of them do; 0 otherwise, and where it cannot be told.
[[nodiscard]] std::int64_t nonfinite_times_zero(const Frame& frame, c10::ArrayRef<c10::IValue> outputs) noexcept;

}  // namespace ampscope::observe
