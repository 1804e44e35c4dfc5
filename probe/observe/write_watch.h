// What narrow types lose when something is written in them: an update too small for the weight, a moving average that
// does not move, a sum that no longer grows, positions that become equal, probabilities that miss one. Looked at in
// steps with full numerics only, at some elements of each tensor; single numbers that are added to in every step.
#pragma once

#include "probe/observe/tensor_access.h"
#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Whether the op that is about to run may write a narrow tensor in a way that is looked at. Cheap: asked of every op.
[[nodiscard]] inline bool may_watch_write(const Session& session, const Frame& frame,
                                          c10::ArrayRef<const c10::IValue> inputs) noexcept {
  if (frame.op->update == Update::none) return false;
  if (session.full_numerics.load(std::memory_order_relaxed)) return true;
  // Counters and totals: they cost nothing to look at, and what is lost happens at some step or other.
  if (frame.op->update != Update::add) return false;
  for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), 2); ++i) {
    const at::Tensor* tensor = tensor_of(inputs[i]);
    if (!tensor) continue;
    const c10::TensorImpl& impl = *tensor->unsafeGetTensorImpl();
    if (trace::is_half(dtype_of(impl)) && !impl.has_symbolic_sizes_strides() && impl.numel() == 1) return true;
  }
  return false;
}

/// An op for which may_watch_write holds is about to run: keeps some elements if it changes a tensor of a narrow type
/// that outlives it.
void watch_write(Session& session, ThreadState& thread, Frame& frame, c10::ArrayRef<const c10::IValue> inputs);
/// An op has ended: compares with what was kept, and looks at conversions of numbers that count something and at rows
/// of probabilities.
void watch_result(Session& session, ThreadState& thread, Frame& frame, c10::ArrayRef<c10::IValue> outputs);

/// An optimizer (none: not known yet) is about to step: keeps some elements of its parameters of narrow types.
void watch_parameters(Session& session, ThreadState& thread, std::int64_t optimizer);
/// A fused kernel of the optimizer is about to write the parameters of its first list.
void note_fused_write(ThreadState& thread, c10::ArrayRef<const c10::IValue> inputs);
/// It has stepped. `skipped`: its kernel left everything as it was.
void compare_parameters(Session& session, ThreadState& thread, const Frame& frame, bool skipped);

}  // namespace ampscope::observe
