// The gradient scaler and the optimizers, as their ops show them.
#pragma once

#include <string>

#include <c10/util/ArrayRef.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

void start_unscale(Session& session, ThreadState& thread, Frame& frame, c10::ArrayRef<const c10::IValue> inputs);
void end_unscale(Session& session, ThreadState& thread, Frame& frame);
void start_update(Session& session, ThreadState& thread, Frame& frame, c10::ArrayRef<const c10::IValue> inputs);
void end_update(Session& session, ThreadState& thread, Frame& frame);
/// A call of Python's GradScaler that unscales gradients or updates the scale begins or ends.
void scaler_region(Session& session, ThreadState& thread, bool begins);
/// A multiplication: of a loss by the scale?
void note_loss_scaling(Session& session, ThreadState& thread, const Frame& frame,
                       c10::ArrayRef<const c10::IValue> inputs);
/// fill_ or copy_ into the scale tensor: the program sets the scale itself.
void note_scale_assignment(Session& session, ThreadState& thread, const Frame& frame,
                           c10::ArrayRef<c10::IValue> outputs);

/// A number was read from a device: what an unscale has found, perhaps.
void note_number_read(Session& session, const Frame& frame, c10::ArrayRef<c10::IValue> outputs);
void optimizer_range_begins(Session& session, ThreadState& thread);
void optimizer_range_ends(Session& session, ThreadState& thread, const Frame& frame);
/// An op inside an optimizer's range has changed this parameter.
void optimizer_touched(Session& session, ThreadState& thread, std::int64_t parameter);
/// Looks at the gradients that an optimizer (none: any) is about to apply and that no scaler has unscaled.
void look_at_fresh_gradients(Session& session, ThreadState& thread, std::int64_t optimizer);
/// A fused optimizer kernel inside an optimizer's range: it may be told to skip.
void note_fused_kernel(ThreadState& thread, const Frame& frame, c10::ArrayRef<const c10::IValue> inputs);
/// What Python's hook tells of the range that is open on this thread.
void optimizer_told(Session& session, ThreadState& thread, std::uintptr_t object, const std::string& class_name,
                    double learning_rate, bool through_scaler);
/// The scaler threw for one of the reasons that the flags of refusals name.
void note_refusal(Session& session, ThreadState& thread, std::uintptr_t optimizer, const std::string& class_name,
                  std::uint32_t reason);
/// A range of a scaler that is written in C++ says something by itself: that it refuses, that it makes its scale, that
/// a state is loaded. False for the ranges around its calls.
/// `inputs`: of a refusal that concerns an optimizer, one of its parameters.
bool note_scaler_range(Session& session, ThreadState& thread, const std::string& name,
                       c10::ArrayRef<const c10::IValue> inputs);
/// "LRScheduler.step#StepLR.step" → "StepLR".
[[nodiscard]] std::string schedule_class(const std::string& range);

}  // namespace ampscope::observe
