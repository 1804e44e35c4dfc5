#include "probe/observe/shadow.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/to.h>

#include "probe/observe/call_arguments.h"
#include "probe/observe/replay.h"
#include "probe/observe/tensor_access.h"
#include "probe/stats/rounding_error.h"

namespace ampscope::observe {
namespace {

// Of the arguments and of a result; each is held twice in fp64 while it is compared.
constexpr std::int64_t most_elements = std::int64_t{16} << 20;

/// What to compare with: fp16 and bf16 results with fp32, which carries their sums to less than a hundredth of an ulp
/// of theirs; fp32 ones with fp64.
at::ScalarType reference_for(c10::ArrayRef<c10::IValue> outputs) {
  at::ScalarType reference = precision_unknown;
  for (const c10::IValue& value : outputs) {
    const at::Tensor* const tensor = tensor_of(value);
    if (!tensor) continue;
    if (tensor->scalar_type() == at::kFloat) return at::kDouble;
    if (tensor->scalar_type() == at::kHalf || tensor->scalar_type() == at::kBFloat16) reference = at::kFloat;
  }
  return reference;
}

std::span<const double> values_of(const at::Tensor& contiguous) {
  return {contiguous.const_data_ptr<double>(), static_cast<std::size_t>(contiguous.numel())};
}

}  // namespace

void compare_in_higher_precision(Session& session, ThreadState& thread, Frame& frame,
                                 c10::ArrayRef<c10::IValue> outputs) noexcept {
  const std::int64_t step = session.step.load(std::memory_order_relaxed);
  if (frame.site->last_compared_step == step) return;
  frame.site->last_compared_step = step;
  try {
    const at::ScalarType reference = reference_for(outputs);
    if (reference == precision_unknown) return;
    const Unobserved unobserved;
    const WideCall wide = call_in(reference, frame, most_elements);
    if (!wide.refused.empty()) return;
    trace::RoundingErrors errors;
    errors.site = frame.site->id;
    errors.step = step;
    errors.weight = session.comparison_weight.load(std::memory_order_relaxed);
    errors.reference = reference == at::kFloat ? trace::DType::float32 : trace::DType::float64;
    for (std::size_t i = 0; i < std::min(outputs.size(), wide.results.size()); ++i) {
      const at::Tensor* const result = tensor_of(outputs[i]);
      const at::Tensor* const expected = tensor_of(wide.results[i]);
      if (!result || !expected || !result->is_floating_point() || !readable(*result->unsafeGetTensorImpl())) continue;
      if (result->sizes() != expected->sizes() || result->numel() > most_elements) continue;
      const trace::DType dtype = dtype_of(*result->unsafeGetTensorImpl());
      // The results of one op that have other types (statistics in fp32 beside an output in fp16) are not what is
      // meant.
      if (errors.dtype != trace::DType::unknown && errors.dtype != dtype) continue;
      errors.dtype = dtype;
      stats::compare(values_of(result->to(at::kDouble).contiguous()), values_of(expected->to(at::kDouble).contiguous()),
                     errors);
      if (frame.op->only_first_result) break;
    }
    if (errors.elements + errors.nonfinite > 0) session.recorder.rounding(*thread.lane, errors);
    for (std::size_t i = thread.depth - 1; i-- > 0;)
      thread.frames[i].compared_inside = true;
  } catch (...) {  // An op that cannot do it in this precision is not compared.
  }
}

}  // namespace ampscope::observe
