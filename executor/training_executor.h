// A training loop in fp32, fp16 or bf16: accumulation, loss scaling, clipping, schedules, checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>

#include "executor/checkpoint.h"
#include "executor/grad_scaler.h"
#include "executor/learning_rate_schedule.h"
#include "executor/training_observer.h"

namespace torch::nn {
class AnyModule;
class Module;
}  // namespace torch::nn

namespace ampscope::executor {

/// fp16 and bf16 run forward and loss under autocast and keep parameters in fp32; fp16 scales the loss as well.
enum class Precision : std::uint8_t { fp32, fp16, bf16 };

struct Batch {
  at::Tensor input;
  at::Tensor target = {};
  /// Share of this batch in its accumulation window. With the number of samples here, and a loss that is a mean over
  /// samples, a window of micro-batches of any sizes gives the gradients of one big batch.
  double weight = 1.0;
};

/// Where batches come from.
struct DataSource {
  /// The next batch, or nothing at the end of the data. A later call starts the data again.
  std::function<std::optional<Batch>()> next;
  /// Goes to where the source was after that many calls of next(), counted from its making. Optional: without it a
  /// resumed run calls next() that often. In either case the source must not draw from the default random generators,
  /// whose state belongs to the model.
  std::function<void(std::int64_t calls)> seek = nullptr;
};

/// What is trained: something that maps the input of a batch to an output, and the module that owns its parameters.
struct Model {
  using Forward = std::function<at::Tensor(const at::Tensor& input)>;

  /// A module whose forward takes and returns one tensor.
  explicit Model(const torch::nn::AnyModule& module);
  template <typename ModuleType>
  explicit Model(const std::shared_ptr<ModuleType>& module_with_forward)
      : module(module_with_forward),
        forward([module_with_forward](const at::Tensor& input) { return module_with_forward->forward(input); }) {}
  /// Any function of the input. Without a module, checkpoints keep the optimizers' parameters and no buffers.
  explicit Model(Forward function, std::shared_ptr<torch::nn::Module> owner = nullptr)
      : module(std::move(owner)), forward(std::move(function)) {}

  std::shared_ptr<torch::nn::Module> module;
  Forward forward;
};

/// The loss of a batch, a tensor of one element.
using Loss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

/// Scales the gradients of each optimizer down to this norm, see torch::nn::utils::clip_grad_norm_.
struct NormClipping {
  double max_norm = 1.0;
  double norm_type = 2.0;
};
/// Limits every gradient element to [-value, value].
struct ValueClipping {
  double value = 1.0;
};

struct TrainingOptions {
  Precision precision = Precision::fp32;
  c10::DeviceType device_type = c10::DeviceType::CPU;  ///< for autocast and the scaler; tensors are not moved
  std::int64_t accumulation = 1;  ///< micro-batches a step; the last window of the data may be shorter
  std::variant<std::monostate, NormClipping, ValueClipping> clipping = {};  ///< after unscaling
  GradScalerOptions scaler = {};                                            ///< used in fp16 only
};

/// Trains step by step. Not thread-safe.
///
/// A step: gradients are cleared; for each micro-batch forward and loss run under autocast and backward outside of it;
/// then unscale, clip, optimizer steps, scaler update, and the schedules of the optimizers that really stepped.
///
/// When a callback (data, model, loss, observer) or an optimizer throws, the exception reaches the caller of
/// train_step() and the executor can be used on: gradients are cleared, the scaler is ready for a new iteration,
/// nothing was counted, and the step's batches are gone. Parameters and schedules are as before the step unless an
/// optimizer had stepped already; step_end() of observers comes after everything was counted.
class TrainingExecutor {
 public:
  /// @throws c10::Error for no optimizer, an accumulation below 1, a missing function; GradScalerError for bad settings
  TrainingExecutor(Model model, Loss loss, std::vector<std::shared_ptr<torch::optim::Optimizer>> optimizers,
                   DataSource data, TrainingOptions options = {});
  ~TrainingExecutor();
  TrainingExecutor(const TrainingExecutor&) = delete;
  TrainingExecutor& operator=(const TrainingExecutor&) = delete;
  TrainingExecutor(TrainingExecutor&&) = delete;
  TrainingExecutor& operator=(TrainingExecutor&&) = delete;

  /// The schedule advances after real steps of that optimizer (index into the constructor's list).
  void add_schedule(std::unique_ptr<LearningRateSchedule> schedule, std::size_t optimizer = 0);
  /// Observers are told in the order in which they were added.
  void add_observer(std::shared_ptr<TrainingObserver> observer);

  /// Trains on the next window of micro-batches. Nothing at the end of the data; the call after that starts the data
  /// again.
  std::optional<StepReport> train_step();
  /// Steps until `steps` were made or the data ended; returns how many were made.
  std::int64_t train(std::int64_t steps);

  /// Between steps. A run that loads the file continues bit for bit as this one does, on the same machine and torch,
  /// given the same model, optimizers, schedules, options and data.
  /// @throws c10::Error, see checkpoint.h
  void save_checkpoint(const std::string& path);
  /// Changes nothing when it throws, except that the data source may have moved on.
  /// @throws c10::Error, see checkpoint.h; and when the data source has no seek and is already past the saved position
  void load_checkpoint(const std::string& path);

  [[nodiscard]] const TrainingProgress& progress() const noexcept { return progress_; }
  [[nodiscard]] const TrainingOptions& options() const noexcept { return options_; }
  [[nodiscard]] GradScaler& scaler() noexcept { return scaler_; }
  [[nodiscard]] const GradScaler& scaler() const noexcept { return scaler_; }

 private:
  struct ScheduledOptimizer {
    std::shared_ptr<torch::optim::Optimizer> optimizer;
    std::vector<std::unique_ptr<LearningRateSchedule>> schedules;
  };

  void draw_window();
  StepReport run_step(const std::vector<Batch>& window);
  void run_micro_batch(const Batch& batch, std::int64_t index, double share, StepReport& report);
  void clip(StepReport& report);
  void update_scaler(bool found_inf);
  void recover() noexcept;
  [[nodiscard]] TrainingState state();

  template <typename Work>
  void in_phase(Phase phase, const Work& work);
  template <typename Notify>
  void announce(const Notify& notify);

  Model model_;
  Loss loss_;
  std::vector<ScheduledOptimizer> optimizers_;
  DataSource data_;
  TrainingOptions options_;
  GradScaler scaler_;
  std::vector<std::shared_ptr<TrainingObserver>> observers_;
  TrainingProgress progress_;
  std::vector<Batch> drawn_;  // batches of the next step that the data source has delivered so far
};

}  // namespace ampscope::executor
