// The level shadow: calls computed a second time in higher precision, to see what the types they ran in cost.
#pragma once

#include <c10/util/ArrayRef.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Compares the results of the op that ends in `frame` with the same call in fp32, or in fp64 where the results are
/// fp32, on the same inputs. One call of a site a step; nothing for ops that cannot be called again (see replay.h).
void compare_in_higher_precision(Session& session, ThreadState& thread, Frame& frame,
                                 c10::ArrayRef<c10::IValue> outputs) noexcept;

}  // namespace ampscope::observe
