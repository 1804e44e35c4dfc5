#include "probe/observe/call_arguments.h"

#include <utility>

#include <ATen/core/Tensor.h>

#include "probe/observe/tensor_access.h"

namespace ampscope::observe {

CallArguments arguments_of(const Frame& frame) {
  CallArguments result;
  const auto refused = [&result](const char* reason) {
    result.missing = reason;
    return std::move(result);
  };
  const OpInfo& op = *frame.op;
  if (!op.has_schema) return refused("not a dispatcher operator");
  if (op.mutates) return refused("it writes to its arguments");
  if (!frame.keeps_inputs) return refused(op.random ? "it draws random numbers" : "its arguments were not kept");
  const auto handle = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
  if (!handle) return refused("the operator is not registered");

  std::size_t tensor = 0;
  std::size_t other = 0;
  const std::size_t count = handle->schema().arguments().size();
  for (std::size_t i = 0; i < count; ++i) {
    if (tensor < frame.input_count && frame.inputs[tensor].argument == static_cast<std::int16_t>(i)) {
      auto strong = frame.inputs[tensor++].tensor.lock();
      if (!strong) return refused("an argument was gone when the operator had ended");
      if (!readable(*strong) && !strong->is_wrapped_number()) return refused("an argument cannot be read");
      result.values.emplace_back(at::Tensor(std::move(strong)));
    } else {
      if (other >= frame.arguments.size()) return refused("an argument was not kept");
      result.values.push_back(frame.arguments[other++]);
    }
  }
  result.op = handle;
  return result;
}

}  // namespace ampscope::observe
