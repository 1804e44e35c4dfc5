// Trains a small transformer on the characters of a book in mixed precision on the CPU.
#include <cmath>
#include <limits>

#include <torch/torch.h>

#include "samples/cpp/command_line.h"
#include "samples/cpp/data.h"
#include "samples/cpp/training.h"

namespace ampscope::samples {
namespace {

constexpr std::int64_t context = 32;
constexpr std::int64_t embedding = 16;
constexpr std::int64_t width = 32;
constexpr std::int64_t heads = 2;
constexpr std::int64_t block_count = 2;

struct AttentionImpl : torch::nn::Module {
  AttentionImpl() {
    query_key_value = register_module("query_key_value", torch::nn::Linear(width, 3 * width));
    output = register_module("output", torch::nn::Linear(width, width));
    later = register_buffer("later", torch::ones({context, context}, torch::kBool).triu(1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    // (batch, place, 3 × heads × size) → 3 × (batch, head, place, size)
    const auto parts = query_key_value(x).unflatten(-1, {3, heads, width / heads}).unbind(2);
    const torch::Tensor query = parts[0].transpose(1, 2);
    const torch::Tensor key = parts[1].transpose(1, 2);
    const torch::Tensor value = parts[2].transpose(1, 2);
    const torch::Tensor scores =
        query.matmul(key.transpose(-2, -1)) / std::sqrt(static_cast<double>(width) / static_cast<double>(heads));
    const torch::Tensor weights =
        torch::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
    return output(weights.matmul(value).transpose(1, 2).flatten(2));
  }
  torch::nn::Linear query_key_value{nullptr};
  torch::nn::Linear output{nullptr};
  torch::Tensor later;  ///< places that a place must not see
};
TORCH_MODULE(Attention);

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    const torch::nn::LayerNormOptions norm({width});
    attention_norm = register_module("attention_norm", torch::nn::LayerNorm(norm));
    attention = register_module("attention", Attention());
    feed_forward_norm = register_module("feed_forward_norm", torch::nn::LayerNorm(norm));
    feed_forward =
        register_module("feed_forward", torch::nn::Sequential(torch::nn::Linear(width, 2 * width), torch::nn::GELU(),
                                                              torch::nn::Linear(2 * width, width)));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = x + attention(attention_norm(x));
    return x + feed_forward->forward(feed_forward_norm(x));
  }
  torch::nn::LayerNorm attention_norm{nullptr};
  Attention attention{nullptr};
  torch::nn::LayerNorm feed_forward_norm{nullptr};
  torch::nn::Sequential feed_forward{nullptr};
};
TORCH_MODULE(Block);

struct Transformer : Network {
  explicit Transformer(std::int64_t vocabulary) {
    // A small table and a projection to the width, as ALBERT has them.
    token = register_module("token", torch::nn::Embedding(vocabulary, embedding));
    project = register_module("project", torch::nn::Linear(embedding, width));
    position = register_parameter("position", 0.02 * torch::randn({context, width}));
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (std::int64_t i = 0; i < block_count; ++i)
      blocks->push_back(Block());
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    head = register_module("head", torch::nn::Linear(width, vocabulary));
  }
  torch::Tensor features(const torch::Tensor& tokens) override {
    torch::Tensor x = project(token(tokens)) + position;
    for (const auto& block : *blocks)
      x = block->as<BlockImpl>()->forward(x);
    return norm(x);
  }
  torch::nn::Embedding token{nullptr};
  torch::nn::Linear project{nullptr};
  torch::Tensor position;
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};

Sample windows(const torch::Tensor& tokens, const torch::Tensor& places) {
  const torch::Tensor window = tokens.index({places.unsqueeze(1) + torch::arange(context + 1)});
  return {.inputs = window.slice(1, 0, context), .targets = window.slice(1, 1), .index = places};
}

int train_chars(const CommandLine& options) {
  // The models are so small that handing work to a second thread costs more than it saves.
  torch::set_num_threads(1);
  torch::manual_seed(options.seed);
  const auto book = std::make_shared<Book>(read_book());
  const auto network = std::make_shared<Transformer>(static_cast<std::int64_t>(book->characters.size()));
  Program program{.name = "chars",
                  .network = network,
                  .load =
                      [book](at::Generator& generator, std::int64_t size) {
                        return windows(book->tokens,
                                       torch::randint(book->tokens.size(0) - context, {size}, generator, torch::kLong));
                      },
                  .evaluate =
                      [=] {
                        const Sample sample =
                            windows(book->test_tokens, torch::arange(0, book->test_tokens.size(0) - context, context));
                        return cross_entropy(network->forward(sample.inputs), sample.targets).item<double>();
                      },
                  .measure = "test loss",
                  .enough = [](double loss) { return loss <= 2.7; },
                  .expected = "2.7 or less",
                  .steps = 120,
                  .batch_size = 16,
                  .learning_rate = 1e-2,
                  .digits = nullptr,
                  .book = book};
  return run(program, options, executor::Precision::fp16);
}

}  // namespace
}  // namespace ampscope::samples

int main(int argc, char** argv) {
  using namespace ampscope::samples;
  const CommandLine options = parse_command_line(
      argc, argv, "Trains a small transformer on the characters of a book in mixed precision on the CPU.",
      /*convolution=*/false);
  return run_sample([&] { return train_chars(options); });
}
