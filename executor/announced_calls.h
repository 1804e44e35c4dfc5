// The calls of a training loop, each inside the profiler range that PyTorch's Python gives it.
//
// LibTorch's optimizers, clipping functions and schedulers open no range, so a profiler of a C++ program cannot tell an
// optimizer step from any other in-place arithmetic. Called through these functions they look to every observer of
// at::RecordFunction as they do in a Python program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace ampscope::executor {

/// The optimizer's class without namespaces ("Adam"), which is its name in ranges.
[[nodiscard]] std::string class_name(const torch::optim::Optimizer& optimizer);

/// The scheduler's class without namespaces ("StepLR").
[[nodiscard]] std::string class_name(const torch::optim::LRScheduler& scheduler);

/// optimizer.step(closure) inside "Optimizer.step#Adam.step"; returns what step returns (undefined without a closure).
at::Tensor optimizer_step(torch::optim::Optimizer& optimizer, std::function<at::Tensor()> closure = nullptr);

/// optimizer.zero_grad(set_to_none) inside "Optimizer.zero_grad#Adam.zero_grad".
void zero_grad(torch::optim::Optimizer& optimizer, bool set_to_none = true);

/// torch::nn::utils::clip_grad_norm_ inside "clip_grad_norm_"; returns the norm before clipping.
/// @throws c10::Error with error_if_nonfinite when that norm is not finite
double clip_grad_norm_(const std::vector<at::Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);

/// torch::nn::utils::clip_grad_value_ inside "clip_grad_value_".
void clip_grad_value_(const std::vector<at::Tensor>& parameters, double clip_value);

/// scheduler.step() inside "LRScheduler.step#StepLR.step".
void scheduler_step(torch::optim::LRScheduler& scheduler);

/// call() inside "LRScheduler.step#<name>.step", for schedules that are no torch::optim::LRScheduler.
void scheduler_step(const std::string& name, const std::function<void()>& call);

}  // namespace ampscope::executor
