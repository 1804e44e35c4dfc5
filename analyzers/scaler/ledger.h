// The ledger of a loss scaler: what it did in every step, and for every skip whose gradients were not finite, where
// that began, and whether a smaller scale would have kept the step.
#pragma once

#include <vector>

#include "analyzers/core/report.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

/// Steps without a skip and with the same scale are one entry. Only the first few thousand skips are told in detail.
[[nodiscard]] std::vector<ScalerTimelineEntry> make_ledger(const ProcessAnalysis& process, std::int64_t scaler);

}  // namespace ampscope::analyzers
