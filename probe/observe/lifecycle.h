// Observation of this process from its beginning to its end.
#pragma once

#include <string>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Starts observing. Empty on success, else a sentence why not. A second call does nothing.
[[nodiscard]] std::string attach();
/// Ends observing and completes the trace.
void detach(const std::string& how, const std::string& detail) noexcept;
/// First backward pass: the trace file is made. False when it cannot be; observation is off then.
bool begin_recording(Session& session);
/// From asleep to awake, at a backward pass: in a forked child with a session of its own.
void wake() noexcept;
/// Something of ours has failed: off, with the reason in the trace.
void give_up(const char* reason) noexcept;
/// Adds a thread's counts of events and own time to the recorder's.
void flush_counts(Session& session, ThreadState& thread) noexcept;

}  // namespace ampscope::observe
