// What the rules about vanished constants and values have in common; each adds its own words.
#pragma once

#include <vector>

#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/vanished.h"

namespace ampscope::analyzers {

/// Title, message, proof, evidence and fix of one rule; `met` is the operation that could not bear the zero.
using DescribeLoss = void (*)(const RuleContext& context, const Loss& loss, const trace::Site& met, Finding& finding);

/// What was lost before the call that `origin` blames; nothing when it was something else than `what`.
[[nodiscard]] Loss loss_before(const RuleContext& context, const Origin& origin, Vanished what);

void explain_loss(const RuleContext& context, const Origin& origin, const Loss& loss, DescribeLoss describe,
                  Finding& finding);

/// Adds a warning for each loss whose non-finite result reached neither loss nor weights. It did no harm that the run
/// shows; it is still not what the program means.
void report_unreached(const RuleContext& context, Vanished what, DescribeLoss describe, std::vector<Finding>& findings);

}  // namespace ampscope::analyzers
