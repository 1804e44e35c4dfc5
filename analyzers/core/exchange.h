// What one process of a run gets from the others.
#pragma once

#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/origin.h"

namespace ampscope::analyzers {

/// Operators that exchange values with other processes: what they bring was made elsewhere.
[[nodiscard]] bool is_collective(const trace::Site& site) noexcept;

/// Calls that are there to exchange gradients, or what gradients are computed from.
[[nodiscard]] bool is_gradient_exchange(const trace::Site& site) noexcept;

/// Whether a non-finite value that shows first at `origin` in this process was made in another one, whose own origin
/// lies in the same steps: it came with a collective, or it is not this process's loss that was non-finite.
[[nodiscard]] bool brought_by_exchange(const RuleContext& context, const Origin& origin);

}  // namespace ampscope::analyzers
