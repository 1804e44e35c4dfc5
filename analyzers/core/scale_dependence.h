// What of the backward pass the loss scale reaches: gradients are multiplied by it, saved activations are not.
#pragma once

#include "analyzers/core/trace_view.h"
#include "trace/model.h"

namespace ampscope::analyzers {

/// Whether a backward call works with values of the forward pass alone (x³ in the derivative of x⁴): gradients, and so
/// the loss scale, come in later.
[[nodiscard]] bool takes_no_gradient(const TraceView& view, const trace::NonfiniteEvent& event);

}  // namespace ampscope::analyzers
