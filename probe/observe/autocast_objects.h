// Autocast objects that the program makes, told by the layer that attaches to its language: one that is never entered
// shows in no operator, and a thread that is inside one may run none.
#pragma once

#include <cstdint>
#include <string>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Name of the site that stands for the autocast objects made at one line; its calls are the times one was entered.
inline constexpr const char* autocast_object = "torch.autocast";

/// Returns the id of the site of this line, none when the table of sites is full.
[[nodiscard]] std::int64_t autocast_made(Session& session, ThreadState& thread, trace::SourceLine source,
                                         const std::string& device, const std::string& dtype);
/// `made` as autocast_made returned it: the calling thread has entered such an object. Negative: it has left one.
void autocast_used(Session& session, ThreadState& thread, std::int64_t made);

}  // namespace ampscope::observe
