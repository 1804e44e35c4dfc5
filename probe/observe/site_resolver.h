// Which site a call belongs to: the line of Python, the enclosing op, the forward op of a backward node.
#pragma once

#include <c10/util/ArrayRef.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// Site of an op that the user's code called itself (nothing observed around it but groups). Walks Python's frames only
/// when the op does not follow its predecessor as it did last time, and now and then to check that.
[[nodiscard]] SiteState* resolve_outer(Session& session, ThreadState& thread, Frame& frame, std::uint64_t key,
                                       c10::ArrayRef<const c10::IValue> inputs);

/// Before an anomaly is told: where the site of the innermost call of the user's was only predicted, walks the frames,
/// which still stand, and corrects its site and those of the ops inside it. `outputs` are those of the top frame.
void confirm_sites(Session& session, ThreadState& thread, c10::ArrayRef<c10::IValue> outputs);

/// Site of an op that another op, node or range called; `outer` is the open frame of that one, where there is one.
[[nodiscard]] SiteState* resolve_inner(Session& session, ThreadState& thread, const Frame& frame, SiteState& parent,
                                       Frame* outer, std::uint64_t key, c10::ArrayRef<const c10::IValue> inputs);

/// Site of an op that runs in a backward pass after `latest_node` and in no node: the engine's own, or a hook's, which
/// has a line of the program.
[[nodiscard]] SiteState* resolve_between_nodes(Session& session, ThreadState& thread, const Frame& frame,
                                               SiteState& latest_node, std::uint64_t key,
                                               c10::ArrayRef<const c10::IValue> inputs);

/// Site of an autograd node, which is a child of the op that made it.
[[nodiscard]] SiteState* resolve_node(Session& session, ThreadState& thread, const Frame& frame,
                                      std::int64_t forward_site);

/// Completes the definition with the types of the results and hands it to the recorder: at the end of the first call.
void publish(Session& session, SiteState& site, c10::ArrayRef<c10::IValue> outputs);

}  // namespace ampscope::observe
