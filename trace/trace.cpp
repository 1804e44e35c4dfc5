#include "trace/trace.h"

#include <algorithm>

namespace ampscope::trace {

std::int64_t Trace::steps() const noexcept {
  // Status and step runs are written at different moments; after kill -9 either may be the newer one.
  std::int64_t steps = status.steps;
  if (!step_runs.empty()) steps = std::max(steps, step_runs.back().first_step + step_runs.back().count);
  return steps;
}

}  // namespace ampscope::trace
