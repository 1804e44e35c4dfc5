// What the run computed non-finite and neither loss nor gradients nor weights depend on: a metric that overflows, the
// loss of validation data that hold NaN, what is logged.
#pragma once

#include <vector>

#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/origin.h"

namespace ampscope::analyzers {

/// One origin for each call of the forward pass that made such values and whose result nothing selects from or limits,
/// and for each that read them from data and made a loss without gradients non-finite.
[[nodiscard]] std::vector<Origin> unreached_origins(const RuleContext& context);

}  // namespace ampscope::analyzers
