// The floor of everything that watches operators inside torch: callbacks that do nothing. `peers.py` loads it.
#include <memory>
#include <vector>

#include <ATen/record_function.h>

namespace {

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
  return nullptr;
}
void end(const at::RecordFunction&, at::ObserverContext*) {}

std::vector<at::CallbackHandle>& handles() {
  static std::vector<at::CallbackHandle> all;
  return all;
}

}  // namespace

/// The same scopes as the probe, and like it with inputs and outputs, so that both pay for torch's boxing of arguments.
extern "C" __attribute__((visibility("default"))) void empty_callback_add() {
  for (const at::RecordScope scope :
       {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}) {
    handles().push_back(at::addGlobalCallback(
        at::RecordFunctionCallback(begin, end).needsInputs(true).needsOutputs(true).scopes({scope})));
  }
}

extern "C" __attribute__((visibility("default"))) void empty_callback_remove() {
  for (const at::CallbackHandle handle : handles())
    at::removeCallback(handle);
  handles().clear();
}
