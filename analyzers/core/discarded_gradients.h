// Gradients that nobody uses: a loss that reaches the parameters of another model leaves gradients there, which that
// model's own training clears before its backward pass.
#pragma once

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

/// Whether a gradient that was non-finite in a step was cleared before the optimizer that owns it, or the scaler for
/// it, looked at it. False where it is not known whose it is.
[[nodiscard]] bool discarded(const TraceView& view, const trace::NonfiniteGradient& gradient);

}  // namespace ampscope::analyzers
