#include "executor/training_executor.h"

#include <cmath>
#include <limits>
#include <string>

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/executor/observed_ranges.h"
#include "tests/executor/small_training.h"

namespace ampscope::executor {
namespace {

using testing::batch_number;
using testing::Batches;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::mean_square;
using testing::Net;
using testing::same_bits;
using testing::snapshot;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::shared_ptr<Net> make_net(std::uint64_t seed = 7) {
  torch::manual_seed(seed);
  auto net = std::make_shared<Net>();
  net->dropout->options.p(0.0);
  return net;
}

std::shared_ptr<torch::optim::SGD> sgd(std::vector<torch::Tensor> parameters, double rate = 0.05) {
  return std::make_shared<torch::optim::SGD>(std::move(parameters), torch::optim::SGDOptions(rate).momentum(0.9));
}

/// Of the scale that the gradients of these small problems fit: none of them overflows unless a test wants it to.
constexpr GradScalerOptions fitting_scale{.init_scale = 1024.0};

DataSource source_of(std::vector<Batch> batches) {
  auto place = std::make_shared<std::size_t>(0);
  return {.next = [batches = std::move(batches), place]() -> std::optional<Batch> {
            if (*place == batches.size()) {
              *place = 0;
              return std::nullopt;
            }
            return batches[(*place)++];
          },
          .seek = nullptr};
}

class Recorder : public TrainingObserver {
 public:
  void step_begin(std::int64_t step) override { add("step " + std::to_string(step)); }
  void micro_batch_begin(std::int64_t, std::int64_t i) override { add("micro-batch " + std::to_string(i)); }
  void phase_begin(std::int64_t, Phase phase) override { add(std::string("+") + name(phase)); }
  void phase_end(std::int64_t, Phase phase) override { add(std::string("-") + name(phase)); }
  void micro_batch_end(std::int64_t, std::int64_t, const at::Tensor& loss) override {
    EXPECT_FALSE(loss.requires_grad());
    losses.push_back(loss.item<double>());
    add("loss");
  }
  void scaler_updated(const ScalerEvent& event) override {
    scaler_events.push_back(event);
    add("scaler");
  }
  void step_end(const StepReport& report) override { add(report.taken() ? "taken" : "skipped"); }
  void step_abandoned(std::int64_t step) noexcept override { add("abandoned " + std::to_string(step)); }

  std::vector<std::string> events;
  std::vector<double> losses;
  std::vector<ScalerEvent> scaler_events;

 private:
  static const char* name(Phase phase) {
    switch (phase) {
      case Phase::forward:
        return "forward";
      case Phase::backward:
        return "backward";
      case Phase::unscale:
        return "unscale";
      case Phase::clip:
        return "clip";
      case Phase::optimizer:
        return "optimizer";
      case Phase::update:
        return "update";
    }
    return "?";
  }
  void add(std::string event) { events.push_back(std::move(event)); }
};

TEST(TrainingExecutor, IsTheLoopOneWritesByHandBitForBit) {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    const auto by_hand = make_net();
    {
      torch::optim::SGD optimizer(by_hand->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
      double scale = 1024.0;  // powers of two, so the multiplication by the inverse is exact, and none of it overflows
      for (std::int64_t i = 0; i < 6; ++i) {
        const Batch batch = batch_number(i);
        optimizer.zero_grad();
        at::autocast::set_autocast_dtype(at::kCPU, precision == Precision::fp16 ? at::kHalf : at::kBFloat16);
        at::autocast::set_autocast_enabled(at::kCPU, precision != Precision::fp32);
        const torch::Tensor loss = mean_square(by_hand->forward(batch.input), batch.target);
        at::autocast::clear_cache();
        at::autocast::set_autocast_enabled(at::kCPU, false);
        at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
        if (precision == Precision::fp16) {
          (loss * scale).backward();
          for (auto& parameter : by_hand->parameters())
            parameter.mutable_grad().mul_(1.0 / scale);
          if (i % 2 == 1) scale *= 2.0;
        } else {
          loss.backward();
        }
        torch::nn::utils::clip_grad_norm_(by_hand->parameters(), 0.5);
        optimizer.step();
      }
    }
    const auto net = make_net();
    Batches batches(100);
    TrainingExecutor executor(Model(net), mean_square, {sgd(net->parameters())}, batches.source(),
                              {.precision = precision,
                               .clipping = NormClipping{.max_norm = 0.5},
                               .scaler = {.init_scale = 1024.0, .growth_interval = 2}});
    EXPECT_EQ(executor.train(6), 6);
    EXPECT_TRUE(same_bits(snapshot(*net), snapshot(*by_hand))) << "precision " << static_cast<int>(precision);
    EXPECT_EQ(executor.scaler().get_scale(), precision == Precision::fp16 ? 8192.0 : 1.0);
  }
}

TEST(TrainingExecutor, AccumulationEqualsOneBigBatch) {
  // No batch statistics here: they are taken over a micro-batch, by anyone's accumulation.
  torch::manual_seed(3);
  const auto big = std::make_shared<torch::nn::LinearImpl>(4, 1);
  torch::manual_seed(3);
  const auto small = std::make_shared<torch::nn::LinearImpl>(4, 1);
  const auto loss = [](const torch::Tensor& output, const torch::Tensor& target) {
    return mean_square(output.squeeze(1), target);
  };
  // Micro-batches of 8, 8 and 3 samples, then a last window of 5 alone.
  std::vector<Batch> parts;
  for (const std::int64_t size : {8, 8, 3, 5}) {
    Batch batch = batch_number(size, size);
    batch.weight = static_cast<double>(size);
    parts.push_back(batch);
  }
  const auto joined = [&](std::size_t first, std::size_t last) {
    std::vector<torch::Tensor> inputs;
    std::vector<torch::Tensor> targets;
    for (std::size_t i = first; i < last; ++i) {
      inputs.push_back(parts[i].input);
      targets.push_back(parts[i].target);
    }
    return Batch{.input = torch::cat(inputs), .target = torch::cat(targets)};
  };
  TrainingExecutor one(Model(big), loss, {sgd(big->parameters())}, source_of({joined(0, 3), joined(3, 4)}));
  TrainingExecutor many(Model(small), loss, {sgd(small->parameters())}, source_of(parts), {.accumulation = 3});
  for (int step = 0; step < 2; ++step) {
    const auto expected = one.train_step();
    const auto report = many.train_step();
    ASSERT_TRUE(expected && report);
    EXPECT_EQ(report->micro_batches, step == 0 ? 3 : 1);
    EXPECT_NEAR(report->loss.item<double>(), expected->loss.item<double>(), 1e-6);
  }
  EXPECT_TRUE(torch::allclose(small->weight, big->weight, /*rtol=*/1e-6, /*atol=*/1e-7));
  EXPECT_TRUE(torch::allclose(small->bias, big->bias, /*rtol=*/1e-6, /*atol=*/1e-7));
}

TEST(TrainingExecutor, TheLastShortWindowStepsAndTheDataStartAgain) {
  const auto net = make_net();
  Batches batches(5);
  TrainingExecutor executor(Model(net), mean_square, {sgd(net->parameters())}, batches.source(), {.accumulation = 2});
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(executor.train_step()->micro_batches, 2);
    EXPECT_EQ(executor.train_step()->micro_batches, 2);
    EXPECT_EQ(executor.train_step()->micro_batches, 1);
    EXPECT_FALSE(executor.train_step());
  }
  EXPECT_EQ(executor.progress().steps, 6);
  EXPECT_EQ(executor.train(100), 3);
}

TEST(TrainingExecutor, ASkippedStepLeavesParametersAndScheduleAlone) {
  const auto net = make_net();
  const auto optimizer = sgd(net->parameters(), 0.1);
  Batch spoiled = batch_number(1);
  spoiled.input[2][1] = nan;
  TrainingExecutor executor(Model(net), mean_square, {optimizer},
                            source_of({batch_number(0), spoiled, batch_number(2)}),
                            {.precision = Precision::fp16, .clipping = NormClipping{}, .scaler = fitting_scale});
  executor.add_schedule(std::make_unique<LambdaSchedule>(
      *optimizer, [](std::int64_t steps) { return std::exp2(-static_cast<double>(steps)); }));
  const auto recorder = std::make_shared<Recorder>();
  executor.add_observer(recorder);
  const auto rate = [&] { return optimizer->param_groups()[0].options().get_lr(); };

  EXPECT_TRUE(executor.train_step()->taken());
  EXPECT_DOUBLE_EQ(rate(), 0.05);
  std::vector<torch::Tensor> before;
  for (const auto& parameter : net->parameters())
    before.push_back(parameter.detach().clone());
  const auto skipped = executor.train_step();
  EXPECT_THAT(skipped->skipped, ElementsAre(true));
  EXPECT_TRUE(std::isnan(skipped->loss.item<float>()));
  EXPECT_TRUE(same_bits(before, net->parameters()));
  EXPECT_DOUBLE_EQ(rate(), 0.05);
  EXPECT_EQ(executor.progress().steps, 2);
  EXPECT_EQ(executor.progress().steps_taken, 1);
  ASSERT_EQ(recorder->scaler_events.size(), 2U);
  const ScalerEvent& event = recorder->scaler_events[1];
  EXPECT_TRUE(event.found_inf);
  EXPECT_EQ(event.step, 1);
  EXPECT_EQ(event.scale_before, 1024.0);
  EXPECT_EQ(event.scale_after, 512.0);
  EXPECT_EQ(event.growth_tracker, 0);
  EXPECT_FALSE(recorder->scaler_events[0].found_inf);
  EXPECT_EQ(recorder->scaler_events[0].growth_tracker, 1);
}

TEST(TrainingExecutor, TellsObserversInOrder) {
  const auto net = make_net();
  Batches batches(3);
  TrainingExecutor executor(
      Model(net), mean_square, {sgd(net->parameters())}, batches.source(),
      {.precision = Precision::fp16, .accumulation = 2, .clipping = ValueClipping{0.1}, .scaler = fitting_scale});
  const auto recorder = std::make_shared<Recorder>();
  executor.add_observer(recorder);
  executor.train(2);
  EXPECT_THAT(
      recorder->events,
      ElementsAre("step 0", "micro-batch 0", "+forward", "-forward", "+backward", "-backward", "loss", "micro-batch 1",
                  "+forward", "-forward", "+backward", "-backward", "loss", "+unscale", "-unscale", "+clip", "-clip",
                  "+optimizer", "-optimizer", "+update", "-update", "scaler", "taken",  //
                  "step 1", "micro-batch 0", "+forward", "-forward", "+backward", "-backward", "loss", "+unscale",
                  "-unscale", "+clip", "-clip", "+optimizer", "-optimizer", "+update", "-update", "scaler", "taken"));
}

TEST(TrainingExecutor, InFp32ThereIsNoScalerAndNoAutocast) {
  const auto net = make_net();
  Batches batches(3);
  TrainingExecutor executor(Model([&](const torch::Tensor& input) {
                              EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
                              return net->forward(input);
                            }),
                            mean_square, {sgd(net->parameters())}, batches.source());
  const auto recorder = std::make_shared<Recorder>();
  executor.add_observer(recorder);
  const testing::ObservedRanges ranges;
  executor.train(1);
  EXPECT_THAT(recorder->events, ElementsAre("step 0", "micro-batch 0", "+forward", "-forward", "+backward", "-backward",
                                            "loss", "+optimizer", "-optimizer", "taken"));
  EXPECT_THAT(testing::ObservedRanges::names(),
              ElementsAre("Optimizer.zero_grad#SGD.zero_grad", "Optimizer.step#SGD.step"));
}

TEST(TrainingExecutor, OpensTheRangesOfAPythonLoop) {
  const auto net = make_net();
  const auto optimizer = sgd(net->parameters());
  Batches batches(3);
  TrainingExecutor executor(Model(net), mean_square, {optimizer}, batches.source(),
                            {.precision = Precision::fp16, .clipping = NormClipping{}, .scaler = fitting_scale});
  executor.add_schedule(std::make_unique<LambdaSchedule>(*optimizer, [](std::int64_t) { return 1.0; }));
  const testing::ObservedRanges ranges;
  executor.train(1);
  EXPECT_THAT(testing::ObservedRanges::names(),
              ElementsAre("Optimizer.zero_grad#SGD.zero_grad", "GradScaler.scale", ".GradScaler.make_scale",
                          "GradScaler.unscale_", "clip_grad_norm_", "GradScaler.step", ".Optimizer.step#SGD.step",
                          "GradScaler.update", "LRScheduler.step#LambdaLR.step"));
}

TEST(TrainingExecutor, SkipsEachOptimizerForItself) {
  torch::Tensor good = torch::ones({2}, torch::requires_grad());
  torch::Tensor bad = torch::ones({2}, torch::requires_grad());
  const auto first = sgd({good}, 0.1);
  const auto second = sgd({bad}, 0.1);
  TrainingExecutor executor(
      Model([&](const torch::Tensor& input) { return (good + bad * input).sum(); }),
      [](const torch::Tensor& output, const torch::Tensor&) { return output; }, {first, second},
      source_of({{.input = torch::tensor({1.0F, std::numeric_limits<float>::infinity()}), .target = {}}}),
      {.precision = Precision::fp16, .clipping = NormClipping{.max_norm = 1.0}});
  for (std::size_t i = 0; i < 2; ++i) {
    executor.add_schedule(std::make_unique<LambdaSchedule>(i == 0 ? *first : *second,
                                                           [](std::int64_t steps) { return steps == 0 ? 1.0 : 0.5; }),
                          i);
  }
  const auto report = executor.train_step();
  EXPECT_THAT(report->skipped, ElementsAre(false, true));
  EXPECT_TRUE(report->taken());
  // The gradient of `good` is (1, 1), of norm 1.414 and clipped to 1; the infinite one beside it has no part in that.
  EXPECT_TRUE(torch::allclose(good, torch::full({2}, 1.0 - 0.1 / std::sqrt(2.0)), 1e-5, 1e-6));
  EXPECT_TRUE(torch::equal(bad, torch::ones({2})));
  EXPECT_EQ(first->param_groups()[0].options().get_lr(), 0.05);
  EXPECT_EQ(second->param_groups()[0].options().get_lr(), 0.1);
}

TEST(TrainingExecutor, ClipsValuesAfterUnscaling) {
  torch::Tensor weight = torch::zeros({2}, torch::requires_grad());
  TrainingExecutor executor(Model([&](const torch::Tensor& input) { return (weight * input).sum(); }),
                            [](const torch::Tensor& output, const torch::Tensor&) { return output; },
                            {std::make_shared<torch::optim::SGD>(std::vector<torch::Tensor>{weight}, 1.0)},
                            source_of({{.input = torch::tensor({0.25F, 8.0F}), .target = {}}}),
                            {.precision = Precision::fp16, .clipping = ValueClipping{0.5}});
  executor.train(1);
  EXPECT_TRUE(torch::equal(weight, torch::tensor({-0.25F, -0.5F})));
}

TEST(TrainingExecutor, TakesAnAnyModule) {
  const auto net = make_net();
  const auto same = make_net();
  Batches batches(4);
  Batches same_batches(4);
  TrainingExecutor direct(Model(net), mean_square, {sgd(net->parameters())}, batches.source());
  TrainingExecutor wrapped(Model(torch::nn::AnyModule(same)), mean_square, {sgd(same->parameters())},
                           same_batches.source());
  direct.train(3);
  wrapped.train(3);
  EXPECT_TRUE(same_bits(snapshot(*net), snapshot(*same)));
}

TEST(TrainingExecutor, GoesOnAfterAnExceptionOfTheModel) {
  const auto net = make_net();
  const auto expected = make_net();
  int calls = 0;
  const auto fail_in_second_step = [&](const torch::Tensor& input) {
    // The second micro-batch: gradients of the first are there, scaled.
    if (++calls == 4) throw std::runtime_error("out of luck");
    return net->forward(input);
  };
  Batches batches(100);
  TrainingExecutor executor(Model(fail_in_second_step, net), mean_square, {sgd(net->parameters())}, batches.source(),
                            {.precision = Precision::fp16, .accumulation = 2, .scaler = fitting_scale});
  const auto recorder = std::make_shared<Recorder>();
  executor.add_observer(recorder);
  executor.train(1);
  std::vector<torch::Tensor> before;
  for (const auto& parameter : net->parameters())
    before.push_back(parameter.detach().clone());
  EXPECT_THROW(executor.train_step(), std::runtime_error);

  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_EQ(recorder->events.back(), "abandoned 1");
  EXPECT_EQ(executor.progress().steps, 1);
  EXPECT_EQ(executor.scaler().get_scale(), 1024.0);
  EXPECT_TRUE(same_bits(before, net->parameters()));
  for (const auto& parameter : net->parameters())
    EXPECT_FALSE(parameter.grad().defined());
  EXPECT_TRUE(executor.train_step()->taken());
  EXPECT_EQ(executor.progress().steps, 2);
}

TEST(TrainingExecutor, GoesOnAfterAnExceptionOfAnObserverBetweenUnscaleAndStep) {
  struct Thrower : TrainingObserver {
    void phase_begin(std::int64_t step, Phase phase) override {
      if (step == 0 && phase == Phase::optimizer && !thrown) {
        thrown = true;
        throw std::runtime_error("the observer failed");
      }
    }
    bool thrown = false;
  };
  const auto net = make_net();
  Batches batches(100);
  TrainingExecutor executor(Model(net), mean_square, {sgd(net->parameters())}, batches.source(),
                            {.precision = Precision::fp16, .scaler = fitting_scale});
  executor.add_observer(std::make_shared<Thrower>());
  EXPECT_THROW(executor.train_step(), std::runtime_error);
  // The scaler has forgotten that gradients were unscaled; else this would be refused.
  EXPECT_TRUE(executor.train_step()->taken());
}

TEST(TrainingExecutor, KeepsWhatWasDrawnWhenTheDataThrow) {
  const auto net = make_net();
  int calls = 0;
  std::vector<std::int64_t> trained_on;
  TrainingExecutor executor(Model([&](const torch::Tensor& input) {
                              trained_on.push_back(input.size(0));
                              return net->forward(input);
                            }),
                            mean_square, {sgd(net->parameters())},
                            {.next = [&]() -> std::optional<Batch> {
                               if (++calls == 2) throw std::runtime_error("disk");
                               return batch_number(calls, 10 + calls);
                             },
                             .seek = nullptr},
                            {.accumulation = 2});
  EXPECT_THROW(executor.train_step(), std::runtime_error);
  EXPECT_EQ(executor.train_step()->micro_batches, 2);
  EXPECT_THAT(trained_on, ElementsAre(11, 13));
}

TEST(TrainingExecutor, RefusesWhatCannotBeTrained) {
  const auto net = make_net();
  Batches batches(100);
  const auto make = [&](Loss loss, TrainingOptions options, bool with_optimizer = true) {
    std::vector<std::shared_ptr<torch::optim::Optimizer>> optimizers;
    if (with_optimizer) optimizers.push_back(sgd(net->parameters()));
    return std::make_unique<TrainingExecutor>(Model(net), std::move(loss), optimizers, batches.source(), options);
  };
  EXPECT_THROW(make(nullptr, {}), c10::Error);
  EXPECT_THROW(make(mean_square, {.accumulation = 0}), c10::Error);
  EXPECT_THROW(make(mean_square, {}, /*with_optimizer=*/false), c10::Error);
  EXPECT_THROW(make(mean_square, {.precision = Precision::fp16, .scaler = {.growth_factor = 1.0}}), GradScalerError);
  const auto executor = make([](const torch::Tensor& output, const torch::Tensor&) { return output; }, {});
  try {
    executor->train_step();
    FAIL() << "a loss of 16 elements was accepted";
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("it has 16 elements"));
  }
}

}  // namespace
}  // namespace ampscope::executor
