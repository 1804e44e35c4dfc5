// Series that are not of the recorder's own making.
#pragma once

#include "probe/record/recorder.h"

namespace ampscope::record {

/// trace::backward_absmax_series
inline constexpr Series backward_absmax{4};

}  // namespace ampscope::record
