#include "probe/observe/call_arguments.h"

#include <utility>

#include <ATen/core/Tensor.h>

#include "probe/observe/tensor_access.h"

namespace ampscope::observe {

namespace {

bool writes_first_alone(const c10::FunctionSchema& schema) {
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
    if ((alias != nullptr && alias->isWrite()) != (i == 0)) return false;
  }
  return true;
}

}  // namespace

CallArguments arguments_of(const Frame& frame, const c10::IValue& target) {
  CallArguments result;
  const auto refused = [&result](const char* reason) {
    result.missing = reason;
    return std::move(result);
  };
  const OpInfo& op = *frame.op;
  if (!op.has_schema) return refused("not a dispatcher operator");
  const bool in_place = op.mutates_first && target.isTensor();
  if (op.mutates && !in_place) return refused("it writes to its arguments");
  if (!frame.keeps_inputs) return refused(op.random ? "it draws random numbers" : "its arguments were not kept");
  const auto handle = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
  if (!handle) return refused("the operator is not registered");

  if (in_place && !writes_first_alone(handle->schema())) return refused("it writes to several arguments");

  std::size_t tensor = 0;
  std::size_t other = 0;
  const std::size_t count = handle->schema().arguments().size();
  for (std::size_t i = 0; i < count; ++i) {
    if (tensor < frame.input_count && frame.inputs[tensor].argument == static_cast<std::int16_t>(i)) {
      auto strong = frame.inputs[tensor++].tensor.lock();
      if (!strong) return refused("an argument was gone when the operator had ended");
      if (in_place) {
        const bool itself = frame.inputs[tensor - 1].address == frame.inputs[0].address;
        if (i == 0 || itself) {
          result.values.push_back(target);
          continue;
        }
        const auto written = frame.inputs[0].tensor.lock();
        if (written && written->has_storage() && strong->has_storage() &&
            written->storage().unsafeGetStorageImpl() == strong->storage().unsafeGetStorageImpl()) {
          return refused("it writes to memory that another argument lies in");
        }
      }
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
