#include "executor/training_executor.h"

#include <cmath>
#include <utility>

#include <c10/util/Exception.h>
#include <torch/nn/modules/container/any.h>
#include <torch/optim/optimizer.h>

#include "executor/announced_calls.h"
#include "executor/autocast.h"

namespace ampscope::executor {
namespace {

std::optional<c10::ScalarType> autocast_dtype(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return at::kHalf;
    case Precision::bf16:
      return at::kBFloat16;
    case Precision::fp32:
      break;
  }
  return std::nullopt;
}

GradScalerOptions scaler_options(const TrainingOptions& options) {
  GradScalerOptions scaler = options.scaler;
  scaler.enabled = scaler.enabled && options.precision == Precision::fp16;
  return scaler;
}

double total_weight(const std::vector<Batch>& window) {
  double total = 0.0;
  for (const Batch& batch : window) {
    TORCH_CHECK(batch.weight >= 0.0 && std::isfinite(batch.weight), "A batch has the weight ", batch.weight,
                "; it must be a finite number that is not negative.");
    total += batch.weight;
  }
  TORCH_CHECK(total > 0.0, "All batches of a step have the weight 0.");
  return total;
}

std::vector<at::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> parameters;
  for (const auto& group : optimizer.param_groups()) {
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  }
  return parameters;
}

}  // namespace

Model::Model(const torch::nn::AnyModule& any)
    : module(any.ptr()), forward([any = torch::nn::AnyModule(any)](const at::Tensor& input) mutable {
        return any.forward<at::Tensor>(input);
      }) {}

TrainingExecutor::TrainingExecutor(Model model, Loss loss,
                                   std::vector<std::shared_ptr<torch::optim::Optimizer>> optimizers, DataSource data,
                                   TrainingOptions options)
    : model_(std::move(model)),
      loss_(std::move(loss)),
      data_(std::move(data)),
      options_(options),
      scaler_(options_.device_type, scaler_options(options_)) {
  TORCH_CHECK(model_.forward && loss_ && data_.next, "A training executor needs a model, a loss and a data source.");
  TORCH_CHECK(!optimizers.empty(), "A training executor needs at least one optimizer.");
  TORCH_CHECK(options_.accumulation >= 1, "accumulation is ", options_.accumulation, "; it must be at least 1.");
  for (auto& optimizer : optimizers) {
    TORCH_CHECK(optimizer, "An optimizer is null.");
    optimizers_.push_back({std::move(optimizer), {}});
  }
}

TrainingExecutor::~TrainingExecutor() = default;

void TrainingExecutor::add_schedule(std::unique_ptr<LearningRateSchedule> schedule, std::size_t optimizer) {
  TORCH_CHECK(schedule, "The schedule is null.");
  TORCH_CHECK(optimizer < optimizers_.size(), "There is no optimizer number ", optimizer, " (counted from 0).");
  optimizers_[optimizer].schedules.push_back(std::move(schedule));
}

void TrainingExecutor::add_observer(std::shared_ptr<TrainingObserver> observer) {
  TORCH_CHECK(observer, "The observer is null.");
  observers_.push_back(std::move(observer));
}

template <typename Notify>
void TrainingExecutor::announce(const Notify& notify) {
  for (const auto& observer : observers_)
    notify(*observer);
}

template <typename Work>
void TrainingExecutor::in_phase(Phase phase, const Work& work) {
  announce([&](TrainingObserver& observer) { observer.phase_begin(progress_.steps, phase); });
  work();
  announce([&](TrainingObserver& observer) { observer.phase_end(progress_.steps, phase); });
}

void TrainingExecutor::draw_window() {
  // What is drawn stays drawn when a later call throws: the next train_step() goes on from there.
  while (!progress_.data_ended && static_cast<std::int64_t>(drawn_.size()) < options_.accumulation) {
    std::optional<Batch> batch = data_.next();
    ++progress_.data_position;
    if (batch) {
      drawn_.push_back(std::move(*batch));
    } else {
      progress_.data_ended = true;
    }
  }
}

std::optional<StepReport> TrainingExecutor::train_step() {
  draw_window();
  if (drawn_.empty()) {
    progress_.data_ended = false;
    return std::nullopt;
  }
  const std::vector<Batch> window = std::exchange(drawn_, {});
  StepReport report;
  try {
    report = run_step(window);
  } catch (...) {
    recover();
    throw;
  }
  announce([&](TrainingObserver& observer) { observer.step_end(report); });
  return report;
}

std::int64_t TrainingExecutor::train(std::int64_t steps) {
  for (std::int64_t made = 0; made < steps; ++made) {
    if (!train_step()) return made;
  }
  return steps;
}

StepReport TrainingExecutor::run_step(const std::vector<Batch>& window) {
  const double total = total_weight(window);
  StepReport report;
  report.step = progress_.steps;
  report.micro_batches = static_cast<std::int64_t>(window.size());
  announce([&](TrainingObserver& observer) { observer.step_begin(progress_.steps); });

  for (const ScheduledOptimizer& scheduled : optimizers_)
    zero_grad(*scheduled.optimizer);
  for (std::size_t i = 0; i < window.size(); ++i) {
    run_micro_batch(window[i], static_cast<std::int64_t>(i), window[i].weight / total, report);
  }
  if (scaler_.is_enabled()) {
    in_phase(Phase::unscale, [&] {
      for (const ScheduledOptimizer& scheduled : optimizers_)
        scaler_.unscale_(*scheduled.optimizer);
    });
  }
  clip(report);
  in_phase(Phase::optimizer, [&] {
    for (const ScheduledOptimizer& scheduled : optimizers_) {
      report.skipped.push_back(scaler_.step(*scheduled.optimizer).skipped);
    }
  });
  if (scaler_.is_enabled()) {
    bool found_inf = false;
    for (const bool skipped : report.skipped)
      found_inf = found_inf || skipped;
    update_scaler(found_inf);
  }
  for (std::size_t i = 0; i < optimizers_.size(); ++i) {
    if (report.skipped[i]) continue;
    for (const auto& schedule : optimizers_[i].schedules) {
      scheduler_step(schedule->name(), [&] { schedule->step(); });
    }
  }
  ++progress_.steps;
  if (report.taken()) ++progress_.steps_taken;
  return report;
}

void TrainingExecutor::run_micro_batch(const Batch& batch, std::int64_t index, double share, StepReport& report) {
  announce([&](TrainingObserver& observer) { observer.micro_batch_begin(progress_.steps, index); });
  at::Tensor loss;
  in_phase(Phase::forward, [&] {
    std::optional<Autocast> autocast;
    if (const auto dtype = autocast_dtype(options_.precision)) autocast.emplace(options_.device_type, *dtype);
    loss = loss_(model_.forward(batch.input), batch.target);
  });
  TORCH_CHECK(loss.defined() && loss.numel() == 1, "The loss must be a tensor of one element; it ",
              loss.defined() ? c10::str("has ", loss.numel(), " elements.") : std::string("is undefined."));
  in_phase(Phase::backward, [&] {
    // A window of one batch is left without the multiplication by 1, so that it is the plain loop bit for bit.
    scaler_.scale(share == 1.0 ? loss : loss * share).backward();
  });
  const at::Tensor value = loss.detach();
  if (share == 1.0) {
    report.loss = value;
  } else {
    const at::Tensor part = value.to(at::kFloat) * share;
    report.loss = report.loss.defined() ? report.loss + part : part;
  }
  announce([&](TrainingObserver& observer) { observer.micro_batch_end(progress_.steps, index, value); });
}

void TrainingExecutor::clip(StepReport& report) {
  if (const auto* norm = std::get_if<NormClipping>(&options_.clipping)) {
    in_phase(Phase::clip, [&] {
      for (const ScheduledOptimizer& scheduled : optimizers_) {
        report.gradient_norms.push_back(
            clip_grad_norm_(parameters_of(*scheduled.optimizer), norm->max_norm, norm->norm_type));
      }
    });
  } else if (const auto* value = std::get_if<ValueClipping>(&options_.clipping)) {
    in_phase(Phase::clip, [&] {
      for (const ScheduledOptimizer& scheduled : optimizers_) {
        clip_grad_value_(parameters_of(*scheduled.optimizer), value->value);
      }
    });
  }
}

void TrainingExecutor::update_scaler(bool found_inf) {
  ScalerEvent event{.step = progress_.steps, .found_inf = found_inf};
  in_phase(Phase::update, [&] {
    // The scale is read only for those who listen: reading waits for the device.
    if (!observers_.empty()) event.scale_before = scaler_.get_scale();
    scaler_.update();
  });
  if (observers_.empty()) return;
  event.scale_after = scaler_.get_scale();
  event.growth_tracker = scaler_.get_growth_tracker();
  announce([&](TrainingObserver& observer) { observer.scaler_updated(event); });
}

void TrainingExecutor::recover() noexcept {
  scaler_.abandon_iteration();
  for (const ScheduledOptimizer& scheduled : optimizers_)
    scheduled.optimizer->zero_grad();
  announce([&](TrainingObserver& observer) { observer.step_abandoned(progress_.steps); });
}

TrainingState TrainingExecutor::state() {
  TrainingState state{.module = model_.module.get(), .optimizers = {}, .schedules = {}, .scaler = &scaler_};
  for (const ScheduledOptimizer& scheduled : optimizers_) {
    state.optimizers.push_back(scheduled.optimizer.get());
    for (const auto& schedule : scheduled.schedules)
      state.schedules.push_back(schedule.get());
  }
  return state;
}

void TrainingExecutor::save_checkpoint(const std::string& path) {
  TrainingProgress progress = progress_;
  // Batches left over from a data source that threw were not trained on; a resumed run draws them again.
  progress.data_position -= static_cast<std::int64_t>(drawn_.size());
  executor::save_checkpoint(path, state(), progress);
}

void TrainingExecutor::load_checkpoint(const std::string& path) {
  Checkpoint checkpoint(path, state());
  const std::int64_t position = checkpoint.progress().data_position;
  if (data_.seek) {
    data_.seek(position);
  } else {
    TORCH_CHECK(progress_.data_position <= position, "The data source was already called ", progress_.data_position,
                " times and the checkpoint ", path, " was saved after ", position,
                " calls. Give the data source a seek function, or load into a fresh executor.");
    while (progress_.data_position < position) {
      data_.next();
      ++progress_.data_position;
    }
  }
  drawn_.clear();
  checkpoint.restore();
  progress_ = checkpoint.progress();
}

}  // namespace ampscope::executor
