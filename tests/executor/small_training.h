// A small training to test with: a network with dropout and running statistics, and data made from a seed.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include "executor/training_executor.h"

namespace ampscope::executor::testing {

struct Net : torch::nn::Module {
  Net() {
    first = register_module("first", torch::nn::Linear(4, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    dropout = register_module("dropout", torch::nn::Dropout(0.25));
    last = register_module("last", torch::nn::Linear(8, 1));
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return last(dropout(torch::relu(norm(first(input)).to(torch::kFloat)))).to(torch::kFloat).squeeze(1);
  }
  torch::nn::Linear first{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::nn::Linear last{nullptr};
};

inline torch::Tensor mean_square(const torch::Tensor& output, const torch::Tensor& target) {
  return (output - target).square().mean();
}

/// A linear problem: batch number i is the same in every source.
inline Batch batch_number(std::int64_t i, std::int64_t size = 16) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(1000 + i));
  const torch::Tensor input = torch::randn({size, 4}, generator);
  return {.input = input, .target = input.sum(1) * 0.5, .weight = 1.0};
}

/// `count` batches a pass; each pass has other ones.
class Batches {
 public:
  explicit Batches(std::int64_t count) : count_(count) {}

  [[nodiscard]] DataSource source(bool can_seek = false) {
    DataSource source{.next = [this] { return next(); }, .seek = nullptr};
    if (can_seek) source.seek = [this](std::int64_t calls) { calls_ = calls; };
    return source;
  }
  [[nodiscard]] std::int64_t calls() const { return calls_; }

 private:
  std::optional<Batch> next() {
    const std::int64_t call = calls_++;
    if (call % (count_ + 1) == count_) return std::nullopt;
    return batch_number(call);
  }

  std::int64_t count_;
  std::int64_t calls_ = 0;
};

/// Copies of all parameters and buffers.
inline std::vector<torch::Tensor> snapshot(const torch::nn::Module& module) {
  std::vector<torch::Tensor> tensors;
  for (const torch::Tensor& tensor : module.parameters())
    tensors.push_back(tensor.detach().clone());
  for (const torch::Tensor& tensor : module.buffers())
    tensors.push_back(tensor.detach().clone());
  return tensors;
}

/// Whether all bits are the same, those of NaN included.
inline bool same_bits(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].scalar_type() != b[i].scalar_type() || a[i].sizes() != b[i].sizes()) return false;
    const auto bytes = static_cast<std::size_t>(a[i].nbytes());
    if (std::memcmp(a[i].contiguous().const_data_ptr(), b[i].contiguous().const_data_ptr(), bytes) != 0) return false;
  }
  return true;
}

}  // namespace ampscope::executor::testing
