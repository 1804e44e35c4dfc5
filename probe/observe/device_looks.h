// Values in the memory of a device: asked for where an op has made them, put down to it when the answer arrives.
//
// What a hook sees of a tensor in host memory at once comes here a step later. So a non-finite value is traced by what
// the looks at an op's inputs have shown, not by looking at them again.
#pragma once

#include <ATen/core/Tensor.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

class DeviceLooks;

/// What knows the devices of a session. Null when out of memory; then no device is looked at.
[[nodiscard]] DeviceLooks* make_device_looks(Session& session) noexcept;

/// Whether the values of a tensor can be looked at on its device. The first tensor of a device opens it.
[[nodiscard]] bool on_device(Session& session, const c10::TensorImpl& tensor) noexcept;

/// The output of the op that has just ended on this thread.
void look_at_output(Session& session, ThreadState& thread, const Frame& frame, const c10::TensorImpl& output,
                    const ProducerTable::Entry& made) noexcept;

/// Gradients of one optimizer: added one by one, sent together. `scale`: the loss scale as far as it is known;
/// `inverse_scale`: a tensor that holds its inverse, or null. `divide`: gradients still carry the scale.
void add_gradient_look(Session& session, const c10::TensorImpl& gradient, std::int64_t parameter,
                       trace::DType backward_dtype, double scale, bool divide) noexcept;
void send_gradient_looks(Session& session, const c10::TensorImpl* inverse_scale) noexcept;

/// The tensor that a backward pass begins with.
void look_at_loss(Session& session, const c10::TensorImpl& loss, bool scaled) noexcept;

/// The tensors of GradScaler.update: before it, and after it with all that is known of the call by then.
void look_before_update(Session& session, const c10::TensorImpl& scale, const c10::TensorImpl* tracker,
                        const c10::TensorImpl* found_inf) noexcept;
void look_after_update(Session& session, const c10::TensorImpl& scale, const c10::TensorImpl* tracker,
                       const trace::ScalerUpdate& update) noexcept;

/// Once a step: sends for what was asked and takes what has arrived.
void collect_device_looks(Session& session, ThreadState& thread) noexcept;
/// At the end of the run.
void finish_device_looks(Session& session, ThreadState* thread) noexcept;
/// In a forked child.
void abandon_device_looks(Session& session) noexcept;

}  // namespace ampscope::observe
