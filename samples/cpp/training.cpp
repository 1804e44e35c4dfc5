#include "samples/cpp/training.h"

#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <ATen/CPUGeneratorImpl.h>

#include "executor/announced_calls.h"
#include "executor/training_executor.h"
#include "samples/cpp/faults.h"

namespace ampscope::samples {
namespace {

using executor::Precision;

/// Up in the first tenth of the steps, then down to a twentieth.
double learning_rate_factor(std::int64_t step, std::int64_t steps) {
  const double place = static_cast<double>(step) / static_cast<double>(steps);
  return place < 0.1 ? 0.1 + 9.0 * place : 0.05 + 0.95 * (1.0 - place) / 0.9;
}

executor::GradScalerOptions scaler_options(Precision precision) {
  return {.enabled = precision == Precision::fp16};
}

at::Generator make_generator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

std::unique_ptr<executor::LambdaSchedule> make_schedule(torch::optim::Optimizer& optimizer, std::int64_t steps) {
  return std::make_unique<executor::LambdaSchedule>(
      optimizer, [steps](std::int64_t step) { return learning_rate_factor(step, steps); });
}

/// Prints what happens while it trains, and counts the steps that were taken.
class Log {
 public:
  Log(std::int64_t steps, bool every_loss) : steps_(steps), every_loss_(every_loss) {}

  void step(std::int64_t step, double loss, bool taken, double learning_rate) {
    if (taken) ++taken_;
    if (every_loss_) {
      std::printf("loss %lld %a\n", static_cast<long long>(step), loss);
    } else if (step % std::max<std::int64_t>(1, steps_ / 10) == 0 || step == steps_ - 1) {
      std::printf("step %4lld  loss %.4g  lr %.2e\n", static_cast<long long>(step), loss, learning_rate);
    }
  }

  void end(const executor::GradScaler& scaler, std::int64_t refused = 0) const {
    const std::int64_t left_out = refused > 0 ? refused : steps_ - taken_;
    std::printf("%lld of %lld steps %s", static_cast<long long>(left_out), static_cast<long long>(steps_),
                refused > 0 ? "refused" : "skipped");
    if (scaler.is_enabled()) std::printf(", loss scale %g", scaler.get_scale());
    std::printf("\n");
  }

 private:
  std::int64_t steps_;
  bool every_loss_;
  std::int64_t taken_ = 0;
};

double current_rate(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups().front().options().get_lr();
}

/// The optimizer counts its own steps, so that it is right whatever a fault does around it.
std::int64_t steps_of(torch::optim::AdamW& optimizer) {
  if (optimizer.state().empty()) return 0;
  return static_cast<torch::optim::AdamWParamState&>(*optimizer.state().begin()->second).step();
}

void train_with_executor(Program& program, std::int64_t steps, Precision precision, std::uint64_t seed, Log& log) {
  const auto optimizer = std::make_shared<torch::optim::AdamW>(program.network->parameters(),
                                                               torch::optim::AdamWOptions(program.learning_rate));
  const executor::TrainingOptions options{
      .precision = precision, .accumulation = 2, .clipping = executor::NormClipping{.max_norm = 1.0}, .scaler = {}};
  const executor::DataSource data{
      .next = [&, generator = make_generator(seed)]() mutable -> std::optional<executor::Batch> {
        Sample sample = program.load(generator, program.batch_size / options.accumulation);
        return executor::Batch{.input = std::move(sample.inputs), .target = std::move(sample.targets)};
      },
      .seek = nullptr};
  executor::TrainingExecutor training(executor::Model(program.network), cross_entropy, {optimizer}, data, options);
  training.add_schedule(make_schedule(*optimizer, steps));
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto report = training.train_step();
    log.step(step, report->loss.item<double>(), report->taken(), current_rate(*optimizer));
  }
  log.end(training.scaler());
}

void train_by_hand(Program& program, std::int64_t steps, Precision precision, std::uint64_t seed, const Fault* fault,
                   Log& log) {
  const auto optimizer = std::make_shared<torch::optim::AdamW>(program.network->parameters(),
                                                               torch::optim::AdamWOptions(program.learning_rate));
  Training t{.program = program,
             .steps = steps,
             .precision = precision,
             .generator = make_generator(seed),
             .optimizer = optimizer,
             .schedule = make_schedule(*optimizer, steps),
             .scaler = executor::GradScaler(torch::kCPU, scaler_options(precision)),
             .loss = [](Training& training, const Sample& sample) {
               return cross_entropy(training.program.network->forward(sample.inputs), sample.targets);
             }};
  if (fault != nullptr && fault->change_training) fault->change_training(t);
  for (t.step = 0; t.step < steps; ++t.step) {
    std::vector<Sample> samples;
    samples.reserve(static_cast<std::size_t>(t.accumulation));
    for (std::int64_t i = 0; i < t.accumulation; ++i) {
      samples.push_back(program.load(t.generator, program.batch_size / t.accumulation));
    }
    const std::int64_t before = steps_of(*optimizer);
    const torch::Tensor loss =
        fault != nullptr && fault->train_step ? fault->train_step(t, samples) : train_step(t, samples);
    log.step(t.step, loss.item<double>(), steps_of(*optimizer) > before, current_rate(*optimizer));
  }
  log.end(t.scaler, t.refused);
}

double evaluate(Program& program, Precision precision) {
  const torch::NoGradGuard no_grad;
  program.network->eval();
  const executor::Autocast autocast(torch::kCPU,
                                    {.dtype = precision == Precision::fp16 ? torch::kHalf : torch::kBFloat16,
                                     .enabled = precision != Precision::fp32,
                                     .cache_enabled = std::nullopt});
  return program.evaluate();
}

/// Through a stream, because an archive holds the name of the file it is written to, and files are to be compared.
void save_weights(Network& network, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  torch::serialize::OutputArchive archive;
  network.save(archive);
  archive.save_to(file);
  if (!file.flush()) throw std::runtime_error("The weights cannot be written to " + path);
}

const Fault* find_fault(const std::string& name) {
  for (const Fault& fault : all_faults()) {
    if (fault.name == name) return &fault;
  }
  return nullptr;
}

}  // namespace

executor::AutocastOptions Training::autocast() const {
  return {.dtype = precision == Precision::fp16 ? torch::kHalf : torch::kBFloat16,
          .enabled = precision != Precision::fp32,
          .cache_enabled = std::nullopt};
}

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets) {
  return torch::nn::functional::cross_entropy(logits.flatten(0, -2), targets.flatten());
}

torch::Tensor train_step(Training& t, const std::vector<Sample>& samples) {
  executor::zero_grad(*t.optimizer);
  torch::Tensor total = torch::zeros({});
  for (const Sample& sample : samples) {
    torch::Tensor loss;
    {
      const executor::Autocast autocast(torch::kCPU, t.autocast());
      loss = t.loss(t, sample);
    }
    loss = loss / static_cast<double>(samples.size());
    t.scaler.scale(loss).backward();
    total += loss.detach();
  }
  t.scaler.unscale_(*t.optimizer);
  executor::clip_grad_norm_(t.parameters(), t.max_norm);
  const bool skipped = t.scaler.step(*t.optimizer).skipped;
  t.scaler.update();
  if (!skipped) executor::scheduler_step(t.schedule->name(), [&] { t.schedule->step(); });
  return total;
}

int run(Program& program, const CommandLine& options, Precision default_precision) {
  const Fault* fault = find_fault(options.fault);
  if (fault != nullptr) {
    std::printf("fault: %s: %s\n", fault->name.c_str(), fault->description.c_str());
    if (fault->change_program) fault->change_program(program);
  }
  const std::int64_t steps =
      options.steps.value_or(fault != nullptr ? fault->steps.value_or(program.steps) : program.steps);
  const Precision precision =
      options.precision.value_or(fault != nullptr ? fault->precision.value_or(default_precision) : default_precision);

  program.network->train();
  Log log(steps, options.print_losses);
  if (fault != nullptr || options.by_hand) {
    train_by_hand(program, steps, precision, options.seed, fault, log);
  } else {
    train_with_executor(program, steps, precision, options.seed, log);
  }

  const double reached = evaluate(program, precision);
  std::printf("%s %.4f (healthy: %s after %lld steps)\n", program.measure.c_str(), reached, program.expected.c_str(),
              static_cast<long long>(program.steps));
  if (!options.save.empty()) save_weights(*program.network, options.save);
  if (fault == nullptr && steps >= program.steps && !program.enough(reached)) {
    std::fflush(stdout);
    std::cerr << program.name << " did not learn: " << program.measure << ' ' << reached << '\n';
    return 1;
  }
  return 0;
}

int run_sample(const std::function<int()>& sample) {
  try {
    return sample();
  } catch (const c10::Error& error) {
    std::cerr << error.what_without_backtrace() << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 2;
}

}  // namespace ampscope::samples
