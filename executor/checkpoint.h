// The whole state of a training loop in one file, from which it continues as if it had never stopped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace ampscope::executor {

class GradScaler;
class LearningRateSchedule;

/// How far a training loop has come.
struct TrainingProgress {
  std::int64_t steps = 0;  ///< taken and skipped
  std::int64_t steps_taken = 0;
  std::int64_t data_position = 0;  ///< calls of the data source whose results were used, ends of data included
  bool data_ended = false;         ///< the last of these calls returned the end of the data, which nobody was told yet
};

/// The objects of a training loop that a checkpoint is taken from or written back to. They are borrowed.
struct TrainingState {
  torch::nn::Module* module = nullptr;  ///< may be null: then only what the optimizers own is kept
  std::vector<torch::optim::Optimizer*> optimizers;
  std::vector<LearningRateSchedule*> schedules;
  GradScaler* scaler = nullptr;  ///< may be null
};

/// Writes parameters, buffers, optimizers, schedules, scaler, progress and the state of the default random generators
/// (CPU and every CUDA device). The file appears under its name only when it is complete and on the disk, and an older
/// one of that name stays intact until then.
/// @throws c10::Error that names the file and the reason
void save_checkpoint(const std::string& path, const TrainingState& state, const TrainingProgress& progress);

/// A checkpoint that was read and found to fit.
class Checkpoint {
 public:
  /// Reads the file and compares it with `state`: names, shapes and dtypes of parameters and buffers, classes and
  /// groups of optimizers, classes of schedules. Changes nothing.
  /// @throws c10::Error that names the file and what is wrong: unreadable, no checkpoint, of another model
  Checkpoint(const std::string& path, TrainingState state);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;
  Checkpoint(Checkpoint&&) = delete;
  Checkpoint& operator=(Checkpoint&&) = delete;

  [[nodiscard]] const TrainingProgress& progress() const noexcept;

  /// Writes everything back into the objects of `state`; tensors keep their identity and device. Random generators come
  /// last.
  void restore();

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

}  // namespace ampscope::executor
