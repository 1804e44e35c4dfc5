#include "probe/observe/replay.h"

#include <array>

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/to.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

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

/// No gradient history, no autocast, nothing of Python in between, and the observers of other tools stay blind.
struct Unobserved {
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
  c10::impl::ExcludeDispatchKeyGuard no_python{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
  c10::impl::ExcludeDispatchKeyGuard no_autograd{c10::autograd_dispatch_keyset};
  at::DisableRecordFunctionGuard no_observers;
  c10::AutoGradMode no_grad{false};
};

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

trace::Replay replay(const Frame& frame) noexcept {
  try {
    const OpInfo& op = *frame.op;
    if (!op.has_schema) return refused("not a dispatcher operator");
    if (op.mutates) return refused("it writes to its arguments");
    if (op.random) return refused("it draws random numbers");
    if (!frame.keeps_inputs) return refused("its arguments were not kept");
    const auto handle = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
    if (!handle) return refused("the operator is not registered");

    const Unobserved unobserved;

    std::vector<c10::IValue> stack;
    std::size_t tensor = 0;
    std::size_t other = 0;
    std::int64_t elements = 0;
    bool any_double = false;
    bool any_reduced = false;
    std::vector<at::Tensor> tensors;
    for (std::uint8_t i = 0; i < frame.input_count; ++i) {
      auto strong = frame.inputs[i].tensor.lock();
      if (!strong) return refused("an argument was gone when the operator had ended");
      tensors.emplace_back(std::move(strong));
      const at::Tensor& t = tensors.back();
      if (t.defined() && t.is_floating_point()) {
        if (!readable(*t.unsafeGetTensorImpl()) && !t.unsafeGetTensorImpl()->is_wrapped_number()) {
          return refused("an argument cannot be read");
        }
        elements += t.numel();
        any_double |= t.scalar_type() == at::kDouble;
        any_reduced |= t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16;
      }
    }
    if (elements > max_elements) return refused("its arguments are too large");
    if (any_double) return refused("it ran in fp64 already");
    const at::ScalarType wide = any_reduced ? at::kFloat : at::kDouble;
    const auto widen = [wide](const at::Tensor& t) { return t.defined() && t.is_floating_point() ? t.to(wide) : t; };

    for (const c10::Argument& argument : handle->schema().arguments()) {
      const bool takes_tensor = argument.type()->isSubtypeOf(*c10::TensorType::get()) ||
                                argument.type()->str() == "Optional[Tensor]" || argument.type()->str() == "Tensor?";
      if (takes_tensor && tensor < tensors.size() &&
          frame.inputs[tensor].argument == static_cast<std::int16_t>(stack.size())) {
        stack.emplace_back(widen(tensors[tensor++]));
        continue;
      }
      if (other >= frame.arguments.size()) return refused("an argument was not kept");
      c10::IValue value = frame.arguments[other++];
      // An explicit narrow result type would repeat the fault.
      if (argument.name() == "dtype" && value.isInt()) value = static_cast<std::int64_t>(wide);
      if (argument.name() == "output_mask" || argument.name() == "dtype" || !value.isTensorList()) {
        stack.push_back(std::move(value));
        continue;
      }
      std::vector<at::Tensor> list = value.toTensorVector();
      for (at::Tensor& t : list) {
        elements += t.numel();
        if (elements > max_elements) return refused("its arguments are too large");
        t = widen(t);
      }
      stack.emplace_back(std::move(list));
    }
    handle->callBoxed(stack);
    trace::Replay result;
    result.done = true;
    result.precision = wide == at::kFloat ? "fp32" : "fp64";
    judge(result, stack);
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
