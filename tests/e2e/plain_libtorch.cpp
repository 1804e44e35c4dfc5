// Trainings as people write them on LibTorch alone: its own optimizers and schedules, a loss scale by hand, which
// LibTorch has none of. Each is right or has one fault; the table at the end says what is to be found.
//
//   plain_libtorch NAME
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

namespace {

using torch::Tensor;

class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
};

/// What torch.amp.GradScaler does, with the same two operators.
class Scaler {
 public:
  explicit Scaler(double scale) : scale_(torch::full({}, scale)) {}

  Tensor scale(const Tensor& loss) { return loss * scale_; }

  void unscale(const torch::optim::Optimizer& optimizer) {
    std::vector<Tensor> gradients;
    for (const auto& group : optimizer.param_groups()) {
      for (const Tensor& parameter : group.params()) {
        if (parameter.grad().defined()) gradients.push_back(parameter.grad());
      }
    }
    const torch::NoGradGuard no_grad;
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf_, scale_.reciprocal());
  }

  [[nodiscard]] bool found_inf() const { return found_inf_.item<float>() != 0; }

  void update() {
    const torch::NoGradGuard no_grad;
    at::_amp_update_scale_(scale_, tracker_, found_inf_, 2.0, 0.5, 2000);
    found_inf_.zero_();
  }

 private:
  Tensor scale_;
  Tensor found_inf_ = torch::zeros({});
  Tensor tracker_ = torch::zeros({}, torch::kInt);
};

struct Training {
  torch::nn::Sequential model{torch::nn::Linear(8, 32), torch::nn::ReLU(), torch::nn::Linear(32, 3)};
  Tensor inputs = torch::randn({256, 8});
  Tensor targets = inputs.slice(1, 0, 3).argmax(1);

  Tensor loss(std::int64_t step) {
    const std::int64_t at = step % 8 * 32;
    const Autocast autocast;
    const Tensor logits = model->forward(inputs.slice(0, at, at + 32)).to(torch::kFloat);
    return torch::nn::functional::cross_entropy(logits, targets.slice(0, at, at + 32));
  }

  [[nodiscard]] torch::optim::SGD sgd(double rate = 0.05) const {
    return torch::optim::SGD(model->parameters(), torch::optim::SGDOptions(rate));
  }
};

constexpr int steps = 24;

void say(const Tensor& loss) {
  std::printf("%a\n", loss.item<double>());
}

void scaler_of_operators() {
  Training training;
  auto optimizer = training.sgd();
  torch::optim::StepLR schedule(optimizer, 10, 0.5);
  Scaler scaler(65536.0 * 4096);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = training.loss(step);
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    torch::nn::utils::clip_grad_norm_(training.model->parameters(), 1.0);
    const bool skipped = scaler.found_inf();
    if (!skipped) {
      optimizer.step();
      schedule.step();
    }
    scaler.update();
    say(loss);
  }
}

/// Without operators of a scaler: a number, a look at the gradients, a division.
void own_scale() {
  Training training;
  torch::optim::AdamW optimizer(training.model->parameters(), torch::optim::AdamWOptions(1e-3));
  constexpr double scale = 1024;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = training.loss(step);
    (loss * scale).backward();
    bool finite = true;
    for (const Tensor& parameter : training.model->parameters()) {
      finite = finite && torch::isfinite(parameter.grad()).all().item<bool>();
      parameter.mutable_grad().div_(scale);
    }
    if (finite) optimizer.step();
    say(loss);
  }
}

void own_scale_in_learning_rate() {
  Training training;
  constexpr double scale = 1024;
  auto optimizer = training.sgd(0.05 / scale);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = training.loss(step);
    (loss * scale).backward();
    optimizer.step();
    say(loss);
  }
}

void clipped_before_own_division() {
  Training training;
  auto optimizer = training.sgd();
  constexpr double scale = 1024;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = training.loss(step);
    (loss * scale).backward();
    torch::nn::utils::clip_grad_norm_(training.model->parameters(), 1.0);
    for (const Tensor& parameter : training.model->parameters())
      parameter.mutable_grad().div_(scale);
    optimizer.step();
    say(loss);
  }
}

void infinities_applied() {
  Training training;
  auto optimizer = training.sgd();
  Scaler scaler(65536.0 * 4096);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = training.loss(step);
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    optimizer.step();
    scaler.update();
    say(loss);
  }
}

void schedule_on_skipped_steps() {
  Training training;
  auto optimizer = training.sgd();
  torch::optim::StepLR schedule(optimizer, 10, 0.5);
  Scaler scaler(65536.0 * 65536);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const Tensor loss = training.loss(step);
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    const bool skipped = scaler.found_inf();
    if (!skipped) optimizer.step();
    schedule.step();
    scaler.update();
    say(loss);
  }
}

void unscaled_on_every_micro_batch() {
  Training training;
  auto optimizer = training.sgd();
  Scaler scaler(4096);
  for (int step = 0; step < steps; ++step) {
    const Tensor loss = training.loss(step) / 4;
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    if (step % 4 != 3) continue;
    optimizer.step();
    optimizer.zero_grad();
    scaler.update();
    say(loss);
  }
}

void second_optimizer_on_scaled_gradients() {
  Training training;
  torch::optim::SGD first(training.model[0]->as<torch::nn::Linear>()->parameters(), torch::optim::SGDOptions(0.05));
  torch::optim::SGD second(training.model[2]->as<torch::nn::Linear>()->parameters(), torch::optim::SGDOptions(1e-5));
  Scaler scaler(4096);
  for (int step = 0; step < steps; ++step) {
    first.zero_grad();
    second.zero_grad();
    const Tensor loss = training.loss(step);
    scaler.scale(loss).backward();
    scaler.unscale(first);
    if (!scaler.found_inf()) {
      first.step();
      second.step();
    }
    scaler.update();
    say(loss);
  }
}

void cleared_before_step() {
  Training training;
  auto optimizer = training.sgd();
  Scaler scaler(4096);
  for (int step = 0; step < steps; ++step) {
    const Tensor loss = training.loss(step);
    scaler.scale(loss).backward();
    optimizer.zero_grad();
    scaler.unscale(optimizer);
    optimizer.step();
    scaler.update();
    say(loss);
  }
}

void never_cleared() {
  Training training;
  torch::optim::Adam optimizer(training.model->parameters(), torch::optim::AdamOptions(1e-3));
  Scaler scaler(4096);
  for (int step = 0; step < steps; ++step) {
    const Tensor loss = training.loss(step);
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    if (!scaler.found_inf()) optimizer.step();
    scaler.update();
    say(loss);
  }
}

/// The loss is looked at before the backward pass, which then never comes.
void overflow(const std::function<void()>& stop) {
  Training training;
  auto optimizer = training.sgd();
  Scaler scaler(128);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    Tensor loss = training.loss(step);
    {
      const Autocast autocast;
      const Tensor powers = training.model->forward(training.inputs * (step < 14 ? 0.1 : 20.0));
      loss = loss + 1e-6 * torch::exp2(powers + (step < 14 ? 0.0 : 8.0)).to(torch::kFloat).mean();
    }
    if (!std::isfinite(loss.item<double>())) return stop();
    scaler.scale(loss).backward();
    scaler.unscale(optimizer);
    if (!scaler.found_inf()) optimizer.step();
    scaler.update();
    say(loss);
  }
}

void stops_at_its_loss() {
  overflow([] { std::puts("stopped"); });
}

void throws_at_its_loss() {
  overflow([] { throw std::runtime_error("the loss is not finite"); });
}

struct Entry {
  const char* name;
  const char* rule;
  void (*train)();
};

constexpr Entry trainings[] = {
    {"scaler-of-operators", "quiet", scaler_of_operators},
    {"own-scale", "quiet", own_scale},
    {"own-scale-in-learning-rate", "quiet", own_scale_in_learning_rate},
    {"clipped-before-own-division", "AMP202", clipped_before_own_division},
    {"unscaled-on-every-micro-batch", "AMP204", unscaled_on_every_micro_batch},
    {"infinities-applied", "AMP208", infinities_applied},
    {"second-optimizer-on-scaled-gradients", "AMP208", second_optimizer_on_scaled_gradients},
    {"cleared-before-step", "AMP210", cleared_before_step},
    {"schedule-on-skipped-steps", "AMP212", schedule_on_skipped_steps},
    {"never-cleared", "AMP221", never_cleared},
    {"stops-at-its-loss", "AMP403", stops_at_its_loss},
    {"throws-at-its-loss", "", throws_at_its_loss},  // see test_ends.py
};

}  // namespace

int main(int argument_count, char** arguments) {
  torch::set_num_threads(1);
  torch::manual_seed(0);
  for (const Entry& entry : trainings) {
    if (argument_count == 2 && std::strcmp(entry.name, arguments[1]) == 0) {
      entry.train();
      return 0;
    }
  }
  std::fputs("usage: plain_libtorch NAME\n", stderr);
  return 2;
}
