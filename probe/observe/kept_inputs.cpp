#include "probe/observe/kept_inputs.h"

#include <ATen/core/Tensor.h>

#include "probe/observe/op_info.h"
#include "probe/observe/tensor_access.h"

namespace ampscope::observe {

void keep_inputs(Frame& frame, c10::ArrayRef<const c10::IValue> inputs, bool all_arguments) {
  frame.input_count = 0;
  frame.arguments.clear();
  frame.keeps_inputs = all_arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const at::Tensor* tensor = tensor_of(inputs[i])) {
      if (frame.input_count == Frame::max_inputs) {
        frame.keeps_inputs = false;
        return;
      }
      InputRef& ref = frame.inputs[frame.input_count++];
      ref.tensor = WeakTensor(tensor->getIntrusivePtr());
      ref.address = address_of(*tensor->unsafeGetTensorImpl());
      ref.argument = static_cast<std::int16_t>(i);
    } else if (inputs[i].isTensorList()) {
      // A copy of the list would count as a use of every tensor in it.
      frame.keeps_inputs = false;
    } else if (all_arguments) {
      frame.arguments.push_back(inputs[i]);
    }
  }
}

bool draws(const OpInfo& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (!op.random) return false;
  const auto dropout = static_cast<std::size_t>(op.dropout_argument);
  return op.dropout_argument < 0 || dropout >= inputs.size() || !inputs[dropout].isDouble() ||
         inputs[dropout].toDouble() != 0;
}

void keep_address(Frame& frame, c10::ArrayRef<const c10::IValue> inputs) {
  frame.input_count = 0;
  frame.keeps_inputs = false;
  const at::Tensor* const tensor = inputs.empty() ? nullptr : tensor_of(inputs[0]);
  if (!tensor) return;
  frame.inputs[0].address = address_of(*tensor->unsafeGetTensorImpl());
  frame.inputs[0].argument = 0;
  frame.input_count = 1;
}

}  // namespace ampscope::observe
