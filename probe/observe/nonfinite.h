// What happens when a result holds a NaN or an infinity: who made it, from what.
#pragma once

#include <ATen/core/Tensor.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// An op has ended with a non-finite result. Looks at its inputs, computes it again in higher precision where that
/// tells something, and keeps the event; it is written when the step turns out to be harmed, or when it is the site's
/// first.
void nonfinite_output(Session& session, ThreadState& thread, const Frame& frame, c10::ArrayRef<c10::IValue> outputs,
                      bool has_nan);

/// Whether an op moves gradients in a way that may put numbers where they are not finite: what a hook does that cleans
/// them.
[[nodiscard]] bool may_end_nonfinite_gradient(const Frame& frame) noexcept;

/// Whether an input of an op that computes, or that may end a non-finite gradient, is known to be non-finite; in steps
/// without such a value nobody asks.
[[nodiscard]] bool takes_nonfinite(const Session& session, const Frame& frame) noexcept;

/// An op has ended with finite results although an input is known to be non-finite. Kept like the events above.
void absorbed_input(Session& session, ThreadState& thread, const Frame& frame, c10::ArrayRef<c10::IValue> outputs);

/// Whether what an entry tells of was written by this thread before its running step began.
[[nodiscard]] bool written_in_earlier_step(const ThreadState& thread, const ProducerTable::Entry& entry) noexcept;
/// Notes what is known of the target of an in-place op, its first input, just before the op overwrites it; looks at it
/// where nobody has.
void look_before_write(const Session& session, const ThreadState& thread, Frame& frame,
                       c10::ArrayRef<const c10::IValue> inputs);

/// Writes the calls that led to the first harmful anomaly of the run: those up to the first non-finite output of this
/// step on this thread, or up to now where no output showed it.
void write_recent_calls(Session& session, ThreadState& thread);
/// The gradient that arrives at a parameter is non-finite.
void nonfinite_gradient(Session& session, ThreadState& thread, std::int64_t parameter, const at::Tensor& gradient);

/// Writes what was kept of a step that has turned out bad, forgets what was kept of one that went well.
void settle_events(Session& session, ThreadState& thread);

}  // namespace ampscope::observe
