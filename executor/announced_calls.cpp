#include "executor/announced_calls.h"

#include <cstdlib>
#include <memory>
#include <typeinfo>
#include <utility>

#include <ATen/record_function.h>
#include <cxxabi.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

namespace ampscope::executor {
namespace {

std::string unqualified_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? readable.get() : type.name();
  const std::size_t end = name.find('<');  // template arguments have namespaces of their own
  const std::size_t colon = name.rfind("::", end);
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 2;
  return name.substr(begin, end == std::string::npos ? end : end - begin);
}

/// "<what>#<class>.<method>", empty when nobody listens: making the name costs more than the range.
template <typename T>
std::string range_name(const at::RecordFunction& range, const char* what, const T& object, const char* method) {
  if (!range.isActive()) return {};
  return std::string(what) + '#' + class_name(object) + '.' + method;
}

}  // namespace

std::string class_name(const torch::optim::Optimizer& optimizer) {
  return unqualified_name(typeid(optimizer));
}

std::string class_name(const torch::optim::LRScheduler& scheduler) {
  return unqualified_name(typeid(scheduler));
}

// In each function the name is declared before use by the range, and outlives it: the range keeps only a view of it.

at::Tensor optimizer_step(torch::optim::Optimizer& optimizer, std::function<at::Tensor()> closure) {
  std::string name;
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  name = range_name(range, "Optimizer.step", optimizer, "step");
  range.before(name, c10::ArrayRef<const c10::IValue>{});
  return optimizer.step(std::move(closure));
}

void zero_grad(torch::optim::Optimizer& optimizer, bool set_to_none) {
  std::string name;
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  name = range_name(range, "Optimizer.zero_grad", optimizer, "zero_grad");
  range.before(name, c10::ArrayRef<const c10::IValue>{});
  optimizer.zero_grad(set_to_none);
}

double clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  RECORD_USER_SCOPE("clip_grad_norm_");
  return torch::nn::utils::clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value) {
  RECORD_USER_SCOPE("clip_grad_value_");
  torch::nn::utils::clip_grad_value_(parameters, clip_value);
}

void scheduler_step(torch::optim::LRScheduler& scheduler) {
  std::string name;
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  name = range_name(range, "LRScheduler.step", scheduler, "step");
  range.before(name, c10::ArrayRef<const c10::IValue>{});
  scheduler.step();
}

void scheduler_step(const std::string& name, const std::function<void()>& call) {
  const std::string full_name = "LRScheduler.step#" + name + ".step";
  at::RecordFunction range(at::RecordScope::USER_SCOPE);
  range.before(full_name, c10::ArrayRef<const c10::IValue>{});
  call();
}

}  // namespace ampscope::executor
