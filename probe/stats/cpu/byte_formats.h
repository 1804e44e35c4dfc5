// Statistics of the fp8 types: there are only 256 values.
#pragma once

#include "probe/stats/cpu/runs.h"
#include "probe/stats/flat_stats.h"
#include "probe/stats/kernels.h"

namespace ampscope::stats {

/// For runs of an fp8 format; used by all vector paths.
void accumulate_bytes(Runs& runs, FlatStats& into) noexcept;
[[nodiscard]] NonfiniteCount count_nonfinite_bytes(Runs& runs) noexcept;

}  // namespace ampscope::stats
