// Autograd at work: backward passes, their nodes, the gradients that arrive at parameters.
#pragma once

#include <ATen/record_function.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

void start_node(Session& session, ThreadState& thread, Frame& frame, const at::RecordFunction& function);
void end_node(Session& session, ThreadState& thread, Frame& frame);
/// The first op outside the engine after a backward pass.
void end_backward(Session& session, ThreadState& thread);
/// The gradient of the root is about to be made from this tensor: it is the loss.
void note_loss(Session& session, ThreadState& thread, const c10::IValue& root);

}  // namespace ampscope::observe
