// The profiler ranges that a piece of code opens.
#pragma once

#include <string>
#include <vector>

#include <ATen/record_function.h>

namespace ampscope::executor::testing {

/// Names of the user-scope ranges opened in this process while the object lives, in order, with their depth as leading
/// dots: "GradScaler.step", ".Optimizer.step#SGD.step".
class ObservedRanges {
 public:
  ObservedRanges() {
    names().clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::USER_SCOPE}));
  }
  ~ObservedRanges() { at::removeCallback(handle_); }
  ObservedRanges(const ObservedRanges&) = delete;
  ObservedRanges& operator=(const ObservedRanges&) = delete;
  ObservedRanges(ObservedRanges&&) = delete;
  ObservedRanges& operator=(ObservedRanges&&) = delete;

  static std::vector<std::string>& names() {
    static std::vector<std::string> names;
    return names;
  }

 private:
  static int& depth() {
    static int depth = 0;
    return depth;
  }
  static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& range) {
    names().push_back(std::string(static_cast<std::size_t>(depth()), '.') + range.name());
    ++depth();
    return nullptr;
  }
  static void end(const at::RecordFunction& /*range*/, at::ObserverContext* /*context*/) { --depth(); }

  at::CallbackHandle handle_;
};

}  // namespace ampscope::executor::testing
