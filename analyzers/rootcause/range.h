// Whether a model's activations lie beyond the range of fp16 as such, whatever the loss scale and from the first step.
#pragma once

#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/origin.h"

namespace ampscope::analyzers {

/// A layer of the model (it has weights, or adds two activations) overflows fp16 in the forward pass of the first step
/// and of every later one, from activations that other layers have made large already.
[[nodiscard]] bool beyond_range_from_start(const TraceView& view, const Origin& origin);

/// The claim of a rule that names the operator which overflowed, where a rule knows why it did: `claim`, but less than
/// proven when the model's activations do not fit fp16 as such, or when the run diverges.
[[nodiscard]] Claim behind_wider_cause(const TraceView& view, const Origin& origin, Claim claim);

}  // namespace ampscope::analyzers
