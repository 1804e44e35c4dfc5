#include "probe/observe/announcements.h"

#include <atomic>
#include <mutex>

#include <ATen/record_function.h>

#include "probe/observe/op_observer.h"

namespace ampscope::observe {
namespace {

// A handle for each kind, so that each can be turned off: disjoint scopes cost what one handle for all of them would.
struct Handles {
  at::CallbackHandle operators = 0;
  at::CallbackHandle nodes = 0;
  at::CallbackHandle ranges = 0;
};
Handles handles;
std::mutex announce_mutex;
std::atomic<Announced> announced{Announced::nothing};

at::CallbackHandle add(at::RecordScope scope) {
  // No sampling probability: torch draws for every node and scope anew.
  return at::addGlobalCallback(
      at::RecordFunctionCallback(start_callback, end_callback).needsInputs(true).needsOutputs(true).scopes({scope}));
}

void turn(at::CallbackHandle handle, bool on) {
  if (on) {
    at::reenableCallback(handle);
  } else {
    at::disableCallback(handle);
  }
}

}  // namespace

void announce(Announced wanted) {
  if (announced.load(std::memory_order_acquire) == wanted) return;
  const std::lock_guard lock(announce_mutex);
  Announced before = announced.exchange(wanted, std::memory_order_acq_rel);
  if (before == wanted) return;
  if (wanted == Announced::nothing) {
    // Removed and not disabled: for as long as there is a callback, torch allocates for autograd's nodes.
    for (const at::CallbackHandle handle : {handles.operators, handles.nodes, handles.ranges})
      at::removeCallback(handle);
    handles = {};
    return;
  }
  if (before == Announced::nothing) {
    handles = {add(at::RecordScope::FUNCTION), add(at::RecordScope::BACKWARD_FUNCTION),
               add(at::RecordScope::USER_SCOPE)};
    before = Announced::everything;
  }
  const auto toggle = [&](at::CallbackHandle handle, bool (*is_in)(Announced)) {
    if (is_in(before) != is_in(wanted)) turn(handle, is_in(wanted));
  };
  toggle(handles.operators, [](Announced what) { return what == Announced::everything; });
  toggle(handles.nodes, [](Announced what) { return what == Announced::everything || what == Announced::nodes; });
  toggle(handles.ranges, [](Announced what) { return what == Announced::everything || what == Announced::ranges; });
}

}  // namespace ampscope::observe
