// Keeps the arguments of calls that made a non-finite value in files of their own, so that the fault can be shown
// alone.
#pragma once

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Writes the arguments of the call in `frame` to AMPSCOPE_REPRO/call<order>.<pid>.pt, where a folder was asked for:
/// a tuple (operator, overload, positional arguments, names of keyword arguments, their values) that torch.load reads
/// with weights_only=True. Few calls and a bounded number of bytes are kept; what cannot be kept is left out.
void keep_call(Session& session, const Frame& frame, const trace::NonfiniteEvent& event) noexcept;

/// At the beginning of an in-place op, where such a folder was asked for: copies what it is about to overwrite into
/// `frame`, for keep_call. False where the call cannot be kept.
bool keep_before_write(const Session& session, Frame& frame, c10::ArrayRef<const c10::IValue> inputs) noexcept;

}  // namespace ampscope::observe
