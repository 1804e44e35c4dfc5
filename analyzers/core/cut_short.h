#pragma once

#include <cstdint>
#include <optional>

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

/// The step in which a program ended because of values that were not finite, before it came to a backward pass: it
/// looked at its loss and left, or an argument check of torch refused them. Such a step has no loss to look at. nullopt
/// where the program ended otherwise.
[[nodiscard]] std::optional<std::int64_t> step_cut_short(const TraceView& view);

}  // namespace ampscope::analyzers
