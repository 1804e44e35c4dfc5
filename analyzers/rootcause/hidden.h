// Regions whose kernels are not observed: what torch.compile made of a part of the program.
#pragma once

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

/// The innermost range around a site that is such a region; null where there is none.
[[nodiscard]] const trace::Site* hidden_region(const TraceView& view, const trace::Site& site);

}  // namespace ampscope::analyzers
