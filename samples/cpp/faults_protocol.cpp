#include <cstdio>

#include <torch/torch.h>

#include "executor/announced_calls.h"
#include "samples/cpp/faults.h"
#include "samples/cpp/training.h"

// Each step shows what is wrong in it, at the marked lines; what is as in train_step() is shared.

namespace ampscope::samples {
namespace {

using executor::Autocast;
using executor::GradScaler;

using Samples = std::vector<Sample>;

/// The backward passes of a window, right.
torch::Tensor backward_all(Training& t, const Samples& samples) {
  executor::zero_grad(*t.optimizer);
  torch::Tensor total = torch::zeros({});
  for (const Sample& sample : samples) {
    torch::Tensor loss;
    {
      const Autocast autocast(torch::kCPU, t.autocast());
      loss = t.loss(t, sample);
    }
    loss = loss / static_cast<double>(samples.size());
    t.scaler.scale(loss).backward();
    total += loss.detach();
  }
  return total;
}

/// Step, update, schedule.
void finish_step(Training& t) {
  const bool skipped = t.scaler.step(*t.optimizer).skipped;
  t.scaler.update();
  if (!skipped) executor::scheduler_step(t.schedule->name(), [&] { t.schedule->step(); });
}

torch::Tensor backward_under_autocast(Training& t, const Samples& samples) {
  executor::zero_grad(*t.optimizer);
  torch::Tensor total = torch::zeros({});
  for (const Sample& sample : samples) {
    const Autocast autocast(torch::kCPU, t.autocast());
    const torch::Tensor loss = t.loss(t, sample) / static_cast<double>(samples.size());
    t.scaler.scale(loss).backward();  // the guard still lives
    total += loss.detach();
  }
  t.scaler.unscale_(*t.optimizer);
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  finish_step(t);
  return total;
}

torch::Tensor loss_outside_autocast(Training& t, const Samples& samples) {
  executor::zero_grad(*t.optimizer);
  torch::Tensor total = torch::zeros({});
  for (const Sample& sample : samples) {
    torch::Tensor logits;
    {
      const Autocast autocast(torch::kCPU, t.autocast());
      logits = t.program.network->forward(sample.inputs);
    }
    const torch::Tensor loss =
        cross_entropy(logits, sample.targets) / static_cast<double>(samples.size());  // in the dtype of the logits
    t.scaler.scale(loss).backward();
    total += loss.detach();
  }
  t.scaler.unscale_(*t.optimizer);
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  finish_step(t);
  return total;
}

torch::Tensor missing_scaler(Training& t, const Samples& samples) {
  constexpr double loss_weight = 1e-4;  // of this task among several
  executor::zero_grad(*t.optimizer);
  torch::Tensor total = torch::zeros({});
  for (const Sample& sample : samples) {
    torch::Tensor loss;
    {
      const Autocast autocast(torch::kCPU, t.autocast());
      loss = loss_weight * t.loss(t, sample);
    }
    loss = loss / static_cast<double>(samples.size());
    loss.backward();  // not scaled
    total += loss.detach();
  }
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  executor::optimizer_step(*t.optimizer);
  executor::scheduler_step(t.schedule->name(), [&] { t.schedule->step(); });
  return total;
}

torch::Tensor clip_before_unscale(Training& t, const Samples& samples) {
  const torch::Tensor total = backward_all(t, samples);
  executor::clip_grad_norm_(t.parameters(), t.max_norm);  // unscale_() is missing before it
  finish_step(t);
  return total;
}

torch::Tensor scaler_bypassed(Training& t, const Samples& samples) {
  const torch::Tensor total = backward_all(t, samples);
  executor::optimizer_step(*t.optimizer);  // not through the scaler
  executor::scheduler_step(t.schedule->name(), [&] { t.schedule->step(); });
  return total;
}

torch::Tensor scheduler_advanced_on_skip(Training& t, const Samples& samples) {
  const torch::Tensor total = backward_all(t, samples);
  t.scaler.unscale_(*t.optimizer);
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  t.scaler.step(*t.optimizer);
  t.scaler.update();
  executor::scheduler_step(t.schedule->name(), [&] { t.schedule->step(); });  // whether or not the step was skipped
  return total;
}

/// What a program does that keeps going whatever the scaler throws. False: it threw.
template <typename Call>
bool carry_on(Call&& call) {
  try {
    call();
    return true;
  } catch (const executor::GradScalerError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return false;
  }
}

torch::Tensor unscaled_twice(Training& t, const Samples& samples) {
  const torch::Tensor total = backward_all(t, samples);
  t.scaler.unscale_(*t.optimizer);                     // to log the norm
  carry_on([&] { t.scaler.unscale_(*t.optimizer); });  // to clip
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  finish_step(t);
  return total;
}

torch::Tensor update_forgotten(Training& t, const Samples& samples) {
  const torch::Tensor total = backward_all(t, samples);
  if (!carry_on([&] { t.scaler.step(*t.optimizer); })) ++t.refused;  // update() is missing behind it
  executor::scheduler_step(t.schedule->name(), [&] { t.schedule->step(); });
  return total;
}

torch::Tensor scaler_in_every_epoch(Training& t, const Samples& samples) {
  constexpr std::int64_t epoch = 12;
  if (t.step % epoch == 0) t.scaler = GradScaler(torch::kCPU, {.init_scale = 16777216.0});
  const torch::Tensor total = backward_all(t, samples);
  t.scaler.unscale_(*t.optimizer);
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  finish_step(t);
  return total;
}

torch::Tensor scaler_restored_in_every_epoch(Training& t, const Samples& samples) {
  constexpr std::int64_t epoch = 12;
  if (t.step > 0 && t.step % epoch == 0) {
    const auto state = t.scaler.state_dict();
    t.scaler = GradScaler(torch::kCPU);
    t.scaler.load_state_dict(state);
  }
  const torch::Tensor total = backward_all(t, samples);
  t.scaler.unscale_(*t.optimizer);
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  finish_step(t);
  return total;
}

void start_from_a_large_scale(Training& t) {
  t.scaler = GradScaler(torch::kCPU, {.init_scale = 16777216.0});
}

}  // namespace

std::vector<Fault> protocol_faults() {
  return {
      {.name = "backward-under-autocast",
       .rule = "AMP101",
       .description = "backward() is called while autocast is still on.",
       .train_step = backward_under_autocast},
      {.name = "loss-outside-autocast",
       .rule = "AMP102",
       .description = "The loss is computed outside the autocast region, so it is reduced in fp16.",
       .train_step = loss_outside_autocast},
      {.name = "missing-scaler",
       .rule = "AMP201",
       .description = "fp16 autocast without a GradScaler; the loss is small and its gradients are flushed to zero.",
       .change_training = [](Training& t) { t.scaler = GradScaler(torch::kCPU, {.enabled = false}); },
       .train_step = missing_scaler},
      {.name = "clip-before-unscale",
       .rule = "AMP202",
       .description = "Gradients are clipped while they are still multiplied by the loss scale.",
       .train_step = clip_before_unscale},
      {.name = "scaler-bypassed",
       .rule = "AMP208",
       .description = "The loss is scaled, but the optimizer steps directly and applies the scaled gradients.",
       .train_step = scaler_bypassed},
      {.name = "scheduler-advanced-on-skip",
       .rule = "AMP212",
       .description = "The learning-rate schedule advances on skipped steps too.",
       .change_training = start_from_a_large_scale,  // one that has to settle first, as after a change of the model
       .train_step = scheduler_advanced_on_skip},
      {.name = "scaler-in-every-epoch",
       .rule = "AMP215",
       .description = "A new GradScaler in every epoch forgets the scale that the one before it had found.",
       .train_step = scaler_in_every_epoch},
      {.name = "scaler-restored",
       .rule = "quiet",
       .description = "No mistake: a new GradScaler in every epoch takes over the state of the one before it.",
       .train_step = scaler_restored_in_every_epoch},
      {.name = "unscaled-twice",
       .rule = "AMP205",
       .description = "unscale_() is called twice on the same gradients, and the exception is swallowed.",
       .train_step = unscaled_twice},
      {.name = "update-forgotten",
       .rule = "AMP206",
       .description = "step() without update(), and the exception of the next step() is swallowed.",
       .train_step = update_forgotten},
      {.name = "scaler-with-bf16",
       .rule = "AMP217",
       .description = "A GradScaler is left on in a bf16 run, where it does work for nothing.",
       .precision = executor::Precision::bf16,
       .change_training = [](Training& t) { t.scaler = GradScaler(torch::kCPU); }},
      {.name = "calibration",
       .rule = "AMP301",
       .description =
           "No mistake: a large initial scale is halved in the first steps until it fits, as it is meant to be.",
       .change_training = start_from_a_large_scale},
  };
}

}  // namespace ampscope::samples
