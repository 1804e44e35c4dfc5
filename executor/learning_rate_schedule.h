// Learning-rate schedules whose position can be saved and restored, which LibTorch's own cannot.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace ampscope::executor {

/// Moves the learning rates of one optimizer. The executor calls step() after real steps of that optimizer only.
class LearningRateSchedule {
 public:
  LearningRateSchedule() = default;
  virtual ~LearningRateSchedule() = default;
  LearningRateSchedule(const LearningRateSchedule&) = delete;
  LearningRateSchedule& operator=(const LearningRateSchedule&) = delete;
  LearningRateSchedule(LearningRateSchedule&&) = delete;
  LearningRateSchedule& operator=(LearningRateSchedule&&) = delete;

  /// The class a profiler shows, "StepLR".
  [[nodiscard]] virtual std::string name() const = 0;
  virtual void step() = 0;
  /// All that step() depends on besides the optimizer's current learning rates, which are saved with the optimizer.
  [[nodiscard]] virtual std::vector<double> state() const = 0;
  virtual void set_state(const std::vector<double>& state) = 0;
};

/// Learning rate = the rate the optimizer was made with × factor(number of real steps so far), for each parameter
/// group.
class LambdaSchedule final : public LearningRateSchedule {
 public:
  /// Sets the rates to base × factor(0) at once. The optimizer must outlive the schedule and still have its base rates.
  LambdaSchedule(torch::optim::Optimizer& optimizer, std::function<double(std::int64_t steps)> factor);

  [[nodiscard]] std::string name() const override { return "LambdaLR"; }
  void step() override;
  [[nodiscard]] std::vector<double> state() const override;
  void set_state(const std::vector<double>& state) override;

 private:
  void apply(std::int64_t steps);

  torch::optim::Optimizer& optimizer_;
  std::function<double(std::int64_t)> factor_;
  std::vector<double> base_rates_;
  std::int64_t steps_ = 0;
};

/// Any torch::optim::LRScheduler, for example StepLR. These leave the rates alone in their first step, so they are one
/// step behind Python's, whose constructor takes that step.
class TorchSchedule final : public LearningRateSchedule {
 public:
  explicit TorchSchedule(std::unique_ptr<torch::optim::LRScheduler> scheduler);
  ~TorchSchedule() override;

  [[nodiscard]] std::string name() const override;
  void step() override;
  [[nodiscard]] std::vector<double> state() const override;
  void set_state(const std::vector<double>& state) override;

 private:
  std::unique_ptr<torch::optim::LRScheduler> scheduler_;
};

}  // namespace ampscope::executor
