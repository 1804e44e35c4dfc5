// What the two samples share: what is trained, the training step as it is meant to be, and the loop around it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "executor/autocast.h"
#include "executor/grad_scaler.h"
#include "executor/learning_rate_schedule.h"
#include "samples/cpp/command_line.h"
#include "samples/cpp/data.h"

namespace ampscope::samples {

/// A network that ends in a linear layer, so that a fault can reach what goes into it.
struct Network : torch::nn::Module {
  virtual torch::Tensor features(const torch::Tensor& inputs) = 0;
  torch::Tensor forward(const torch::Tensor& inputs) { return head(features(inputs)); }
  torch::nn::Linear head{nullptr};
};

struct Sample {
  torch::Tensor inputs;
  torch::Tensor targets;
  torch::Tensor index;  ///< which ones these are: rows of the table of digits, places in the book
};

/// One of the two samples: what is trained on what, and what it must reach.
struct Program {
  std::string name;
  std::shared_ptr<Network> network;
  std::function<Sample(at::Generator& generator, std::int64_t size)> load;  ///< draws a training batch
  std::function<double()> evaluate;
  std::string measure;  ///< what evaluate returns: "test accuracy", "test loss"
  std::function<bool(double)> enough;
  std::string expected;
  std::int64_t steps = 0;
  std::int64_t batch_size = 0;
  double learning_rate = 0;
  std::shared_ptr<Digits> digits;  ///< the data, for faults that are in them; one of the two
  std::shared_ptr<Book> book;

  [[nodiscard]] bool is_digits() const { return digits != nullptr; }
};

/// Everything a training step needs, put together once before the loop.
struct Training {
  Program& program;
  std::int64_t steps;
  executor::Precision precision;
  at::Generator generator;
  std::shared_ptr<torch::optim::AdamW> optimizer;
  std::unique_ptr<executor::LambdaSchedule> schedule;
  executor::GradScaler scaler;
  /// The loss of a batch, computed under autocast.
  std::function<torch::Tensor(Training& t, const Sample& sample)> loss;
  std::int64_t accumulation = 2;
  double max_norm = 1.0;
  std::int64_t step = 0;
  std::int64_t refused = 0;  ///< steps that the scaler refused to take, being called wrongly

  [[nodiscard]] executor::AutocastOptions autocast() const;
  [[nodiscard]] std::vector<torch::Tensor> parameters() const { return program.network->parameters(); }
};

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets);

/// One optimizer step over some micro-batches, by hand and right; returns the mean loss.
torch::Tensor train_step(Training& t, const std::vector<Sample>& samples);

/// Trains, evaluates, and returns the exit status: 1 when a healthy run of full length did not learn.
int run(Program& program, const CommandLine& options, executor::Precision precision);

/// main() of a sample: an exception ends it with a message and status 2.
int run_sample(const std::function<int()>& sample);

}  // namespace ampscope::samples
