// Mistakes that people make, each of them trainable with --fault.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "executor/training_executor.h"

namespace at {
class Tensor;
}

namespace ampscope::samples {

struct Program;
struct Sample;
struct Training;

struct Fault {
  std::string name;
  std::string rule;  ///< what ampscope answers
  std::string description;
  std::optional<std::int64_t> steps = std::nullopt;             ///< where fewer than the program's suffice
  std::optional<executor::Precision> precision = std::nullopt;  ///< where it is not the program's
  std::function<void(Program&)> change_program = nullptr;       ///< alters the model or the data
  std::function<void(Training&)> change_training = nullptr;     ///< alters what the loop works with
  /// Stands for the right training step; returns the mean loss.
  std::function<at::Tensor(Training&, const std::vector<Sample>&)> train_step = nullptr;
};

/// In alphabetical order.
const std::vector<Fault>& all_faults();

/// How autocast and the scaler are used.
std::vector<Fault> protocol_faults();
/// What the model and the data do.
std::vector<Fault> number_faults();

}  // namespace ampscope::samples
