#include "executor/learning_rate_schedule.h"

#include <utility>

#include <c10/util/Exception.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include "executor/announced_calls.h"

namespace ampscope::executor {
namespace {

/// LRScheduler counts its steps in a protected member and has neither a getter nor serialization.
struct StepCount : torch::optim::LRScheduler {
  static unsigned& of(torch::optim::LRScheduler& scheduler) { return scheduler.*(&StepCount::step_count_); }
};

void require_size(const std::vector<double>& state, std::size_t size, const std::string& name) {
  TORCH_CHECK(state.size() == size, "The saved state of the schedule ", name, " has ", state.size(),
              " values, and this one needs ", size, ": it was saved by another schedule or for another optimizer.");
}

}  // namespace

LambdaSchedule::LambdaSchedule(torch::optim::Optimizer& optimizer, std::function<double(std::int64_t)> factor)
    : optimizer_(optimizer), factor_(std::move(factor)) {
  for (const auto& group : optimizer_.param_groups())
    base_rates_.push_back(group.options().get_lr());
  apply(0);
}

void LambdaSchedule::apply(std::int64_t steps) {
  const double factor = factor_(steps);
  auto& groups = optimizer_.param_groups();
  TORCH_CHECK(groups.size() == base_rates_.size(),
              "A parameter group was added after the schedule was made; make the schedule after the last group.");
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i].options().set_lr(base_rates_[i] * factor);
  steps_ = steps;
}

void LambdaSchedule::step() {
  apply(steps_ + 1);
}

std::vector<double> LambdaSchedule::state() const {
  std::vector<double> state = base_rates_;
  state.push_back(static_cast<double>(steps_));
  return state;
}

void LambdaSchedule::set_state(const std::vector<double>& state) {
  require_size(state, base_rates_.size() + 1, name());
  base_rates_.assign(state.begin(), state.end() - 1);
  steps_ = static_cast<std::int64_t>(state.back());
}

TorchSchedule::TorchSchedule(std::unique_ptr<torch::optim::LRScheduler> scheduler) : scheduler_(std::move(scheduler)) {}

TorchSchedule::~TorchSchedule() = default;

std::string TorchSchedule::name() const {
  return class_name(*scheduler_);
}

void TorchSchedule::step() {
  scheduler_->step();
}

std::vector<double> TorchSchedule::state() const {
  return {static_cast<double>(StepCount::of(*scheduler_))};
}

void TorchSchedule::set_state(const std::vector<double>& state) {
  require_size(state, 1, name());
  StepCount::of(*scheduler_) = static_cast<unsigned>(state.front());
}

}  // namespace ampscope::executor
