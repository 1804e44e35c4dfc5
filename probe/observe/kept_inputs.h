// What a frame keeps of the arguments of its op until the op ends.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Its tensors, by weak references; its other arguments too when `all_arguments`, so that the call can be made again.
void keep_inputs(Frame& frame, c10::ArrayRef<const c10::IValue> inputs, bool all_arguments);

/// Where values are not looked at, it is enough to know which memory an op was given first.
void keep_address(Frame& frame, c10::ArrayRef<const c10::IValue> inputs);

/// Whether the call takes numbers from a generator: doing it again would move the generator on.
[[nodiscard]] bool draws(const OpInfo& op, c10::ArrayRef<const c10::IValue> inputs);

}  // namespace ampscope::observe
