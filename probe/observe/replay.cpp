#include "probe/observe/replay.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/to.h>

#include "probe/observe/call_arguments.h"
#include "probe/observe/tensor_access.h"
#include "probe/stats/kernels.h"

namespace ampscope::observe {
namespace {

// Twice this in fp64 and the result: bounded, and freed at once.
constexpr std::int64_t max_elements = std::int64_t{64} << 20;

trace::Replay refused(std::string reason) {
  trace::Replay result;
  result.not_done_because = std::move(reason);
  return result;
}

/// Largest finite magnitude and whether all is finite, over the floating results.
void judge(trace::Replay& result, const std::vector<c10::IValue>& outputs) {
  result.finite = true;
  for (const c10::IValue& value : outputs) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const c10::TensorImpl& impl = *value.toTensor().unsafeGetTensorImpl();
    stats::TensorView view;
    if (!readable(impl) || !view_of(impl, view)) continue;
    const stats::Sentinel sentinel = stats::check_nonfinite(view);
    if (sentinel.nonfinite) {
      result.finite = false;
      stats::FlatStats all;
      stats::accumulate(view, all);
      result.absmax = std::max(result.absmax, all.absmax);
    } else {
      result.absmax = std::max(result.absmax, static_cast<double>(sentinel.absmax));
    }
  }
}

}  // namespace

WideCall call_in(at::ScalarType precision, const Frame& frame, std::int64_t most_elements) {
  const auto refused = [](std::string reason) { return WideCall{{}, precision_unknown, std::move(reason)}; };
  // Other libraries' operators may do more than compute, and need not say so.
  if (!frame.op->name.starts_with("aten::")) return refused("not an operator of torch itself");
  CallArguments call = arguments_of(frame);
  if (!call.op) return refused(std::move(call.missing));

  std::int64_t elements = 0;
  bool any_double = false;
  bool any_reduced = false;
  for (const c10::IValue& value : call.values) {
    const at::Tensor* const tensor = tensor_of(value);
    if (!tensor) continue;
    elements += tensor->numel();
    any_double |= tensor->scalar_type() == at::kDouble;
    any_reduced |= tensor->scalar_type() == at::kHalf || tensor->scalar_type() == at::kBFloat16;
  }
  if (elements > most_elements) return refused("its arguments are too large");
  if (any_double) return refused("it ran in fp64 already");
  const at::ScalarType wide = precision != precision_unknown ? precision : any_reduced ? at::kFloat : at::kDouble;

  std::vector<c10::IValue>& stack = call.values;
  const std::vector<c10::Argument>& schema = call.op->schema().arguments();
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const at::Tensor* const tensor = tensor_of(stack[i]);
    // Always a copy: batch normalisation writes to its running statistics though its schema denies it.
    if (tensor && !tensor->unsafeGetTensorImpl()->is_wrapped_number()) {
      stack[i] = tensor->to(tensor->is_floating_point() ? wide : tensor->scalar_type(), false, true);
    }
    // An explicit narrow result type would repeat the fault.
    if (schema[i].name() == "dtype" && stack[i].isInt()) stack[i] = static_cast<std::int64_t>(wide);
  }
  call.op->callBoxed(stack);
  return {std::move(stack), wide, {}};
}

trace::Replay replay(const Frame& frame) noexcept {
  try {
    const Unobserved unobserved;
    WideCall wide = call_in(precision_unknown, frame, max_elements);
    if (!wide.refused.empty()) return refused(std::move(wide.refused));
    trace::Replay result;
    result.done = true;
    result.precision = wide.precision == at::kFloat ? "fp32" : "fp64";
    judge(result, wide.results);
    return result;
  } catch (const std::exception& error) {
    try {
      std::string reason = error.what();
      reason.resize(std::min(reason.size(), reason.find('\n')));
      return refused("it failed: " + reason.substr(0, 200));
    } catch (...) {
      return {};
    }
  } catch (...) {
    return {};
  }
}

std::int64_t nonfinite_times_zero(const Frame& frame, c10::ArrayRef<c10::IValue> outputs) noexcept {
  try {
    if (outputs.size() != 1 || !outputs[0].isTensor() || frame.input_count == 0) return 0;
    const at::Tensor& result = outputs[0].toTensor();
    if (!result.defined() || result.numel() > max_elements || !readable(*result.unsafeGetTensorImpl())) return 0;
    const Unobserved unobserved;
    const at::Tensor bad = result.isfinite().logical_not();
    const std::int64_t all = bad.sum().item<std::int64_t>();
    for (std::uint8_t i = 0; i < frame.input_count; ++i) {
      if (frame.op->mutates_first && frame.inputs[i].argument == 0) continue;  // It holds the result now.
      auto strong = frame.inputs[i].tensor.lock();
      if (!strong) return 0;
      const at::Tensor factor(std::move(strong));
      const bool number = factor.unsafeGetTensorImpl()->is_wrapped_number();
      if (!number && !readable(*factor.unsafeGetTensorImpl())) continue;
      const std::int64_t met = bad.logical_and(factor.eq(0)).sum().item<std::int64_t>();
      if (met == all) return met;
    }
  } catch (...) {  // It tells less then, no more.
  }
  return 0;
}

}  // namespace ampscope::observe
