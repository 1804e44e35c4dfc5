// Trains a classifier of handwritten digits in mixed precision on the CPU.
#include <torch/torch.h>

#include "samples/cpp/command_line.h"
#include "samples/cpp/data.h"
#include "samples/cpp/training.h"

namespace ampscope::samples {
namespace {

constexpr std::int64_t hidden_width = 128;

struct Perceptron : Network {
  Perceptron() {
    input = register_module("input", torch::nn::Linear(64, hidden_width));
    hidden = register_module("hidden", torch::nn::Linear(hidden_width, hidden_width));
    dropout = register_module("dropout", torch::nn::Dropout(0.1));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({hidden_width})));
    head = register_module("head", torch::nn::Linear(hidden_width, 10));
  }
  torch::Tensor features(const torch::Tensor& images) override {
    const torch::Tensor x = torch::relu(input(images));
    return norm(dropout(torch::relu(hidden(x))));
  }
  torch::nn::Linear input{nullptr};
  torch::nn::Linear hidden{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};

struct Convolutional : Network {
  Convolutional() {
    const auto convolution = [](std::int64_t in, std::int64_t out) {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
    };
    conv1 = register_module("conv1", convolution(1, 16));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(16));
    conv2 = register_module("conv2", convolution(16, 32));
    bn2 = register_module("bn2", torch::nn::BatchNorm2d(32));
    pool = register_module("pool", torch::nn::MaxPool2d(2));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({std::int64_t{32} * 2 * 2})));
    head = register_module("head", torch::nn::Linear(32 * 2 * 2, 10));
  }
  torch::Tensor features(const torch::Tensor& images) override {
    torch::Tensor x = images.view({-1, 1, 8, 8});
    x = pool(torch::relu(bn1(conv1(x))));
    x = pool(torch::relu(bn2(conv2(x))));
    return norm(x.flatten(1));
  }
  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::BatchNorm2d bn2{nullptr};
  torch::nn::MaxPool2d pool{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};

/// Draws batches from the images in a new order for each pass through them.
class Shuffled {
 public:
  explicit Shuffled(std::shared_ptr<Digits> data) : data_(std::move(data)) {}

  Sample operator()(at::Generator& generator, std::int64_t size) {
    if (!order_.defined() || place_ + size > order_.size(0)) {
      order_ = torch::randperm(data_->images.size(0), generator);
      place_ = 0;
    }
    const torch::Tensor rows = order_.slice(0, place_, place_ + size);
    place_ += size;
    return {
        .inputs = data_->images.index_select(0, rows), .targets = data_->labels.index_select(0, rows), .index = rows};
  }

 private:
  std::shared_ptr<Digits> data_;
  torch::Tensor order_;
  std::int64_t place_ = 0;
};

int train_digits(const CommandLine& options) {
  // The models are so small that handing work to a second thread costs more than it saves.
  torch::set_num_threads(1);
  torch::manual_seed(options.seed);
  const auto data = std::make_shared<Digits>(read_digits());
  std::shared_ptr<Network> network;
  if (options.convolution) {
    network = std::make_shared<Convolutional>();
  } else {
    network = std::make_shared<Perceptron>();
  }
  Program program{.name = "digits",
                  .network = network,
                  .load = Shuffled(data),
                  .evaluate =
                      [=] {
                        const torch::Tensor found = network->forward(data->test_images).argmax(1);
                        return (found == data->test_labels).to(torch::kFloat).mean().item<double>();
                      },
                  .measure = "test accuracy",
                  .enough = [](double accuracy) { return accuracy >= 0.94; },
                  .expected = "0.94 or more",
                  .steps = 120,
                  .batch_size = 64,
                  .learning_rate = 5e-3,
                  .digits = data,
                  .book = nullptr};
  return run(program, options, options.convolution ? executor::Precision::bf16 : executor::Precision::fp16);
}

}  // namespace
}  // namespace ampscope::samples

int main(int argc, char** argv) {
  using namespace ampscope::samples;
  const CommandLine options = parse_command_line(
      argc, argv, "Trains a classifier of handwritten digits in mixed precision on the CPU.", /*convolution=*/true);
  return run_sample([&] { return train_digits(options); });
}
