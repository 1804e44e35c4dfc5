// What a program does itself with losses, gradients and parameters, outside autograd, optimizers and the scaler.
#pragma once

#include <ATen/core/ivalue.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// A loss times the scale, used outside backward: the program logs it.
void note_loss_read(Session& session, ThreadState& thread, const Frame& frame, c10::ArrayRef<const c10::IValue> inputs);

/// An op may divide a loss by a number of the program's: by how many micro-batches, rows or tokens.
void note_divisor(ThreadState& thread, const Frame& frame, c10::ArrayRef<const c10::IValue> inputs);

/// Outside backward and the optimizers, ops on gradients are the program's own: it clips, logs or checks them.
void note_gradient_access(Session& session, ThreadState& thread, const Frame& frame,
                          c10::ArrayRef<const c10::IValue> inputs);

/// An op that writes to a parameter: an optimizer's, or the program's own update.
void note_parameter_write(Session& session, ThreadState& thread, const Frame& frame,
                          c10::ArrayRef<const c10::IValue> inputs);

}  // namespace ampscope::observe
