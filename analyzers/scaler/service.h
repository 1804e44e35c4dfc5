// Which scaler served which optimizer, and when.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

struct Service {
  std::int64_t scaler = trace::none;
  std::set<std::int64_t> optimizers;  ///< whose gradients it unscaled
  std::int64_t first_step = 0;        ///< of its updates
  std::int64_t last_step = 0;
};

/// By the first step of each; scalers that were never updated are left out.
[[nodiscard]] std::vector<Service> scaler_services(const TraceView& view);

/// Skipped steps in a row that a scaler began with.
[[nodiscard]] std::int64_t leading_skips(const TraceView& view, std::int64_t scaler);

}  // namespace ampscope::analyzers
