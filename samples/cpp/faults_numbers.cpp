#include <cmath>
#include <limits>

#include <torch/torch.h>

#include "samples/cpp/faults.h"
#include "samples/cpp/training.h"

namespace ampscope::samples {
namespace {

torch::Tensor logits_of(Training& t, const Sample& sample) {
  return t.program.network->forward(sample.inputs);
}

// scale-collapse

/// Keeps the normaliser of the softmax near 1, with a weight that grows as a penalty method raises it: without a limit.
torch::Tensor loss_with_growing_penalty(Training& t, const Sample& sample) {
  const torch::Tensor logits = logits_of(t, sample).to(torch::kFloat);
  const double weight = std::exp2(static_cast<double>(t.step - 30) / 3.0);
  return cross_entropy(logits, sample.targets) + weight * logits.logsumexp(-1).square().mean();
}

// fp16-overflow-matmul

/// A value that cannot be read as what it is: a white frame in the raw values of 16 bits; a token that has no place in
/// the table and gets a row of its own, far from all others.
constexpr double out_of_place = 60000.0;

void add_unknown_token(Program& program) {
  if (program.is_digits()) return;
  const torch::NoGradGuard no_grad;
  torch::Tensor table = program.network->named_parameters()["token.weight"];
  table.set_data(torch::cat({table, torch::full({1, table.size(1)}, out_of_place)}));
}

void spoil_one_batch(Training& t) {
  t.program.load = [&t, load = t.program.load, left = std::int64_t{1}](at::Generator& generator,
                                                                       std::int64_t size) mutable {
    Sample sample = load(generator, size);
    if (t.step == t.steps / 2 && left-- > 0) {
      sample.inputs = sample.inputs.clone();
      if (t.program.is_digits()) {
        sample.inputs[7].fill_(out_of_place);
      } else {
        sample.inputs[0][5] = static_cast<std::int64_t>(t.program.book->characters.size());
      }
    }
    return sample;
  };
}

// fp16-overflow-reduction

/// Micro-batches of 131,072 features, or of 147,456 logits.
void enlarge_batches(Program& program) {
  program.batch_size = program.is_digits() ? 2048 : 128;
}

torch::Tensor loss_with_size_penalty(Training& t, const Sample& sample) {
  const torch::Tensor features = t.program.network->features(sample.inputs);
  const torch::Tensor logits = t.program.network->head(features);
  torch::Tensor loss = cross_entropy(logits, sample.targets);
  if (t.step < t.steps / 2) return loss;
  // Keeps the mean square near 1.
  const torch::Tensor& sized = t.program.is_digits() ? features : logits;
  const torch::Tensor mean_square = sized.square().sum() / static_cast<double>(sized.numel());
  return loss + 0.01 * (mean_square - 1).square();
}

// cast-overflow

void use_large_features(Program& program) {
  if (program.is_digits()) {
    // Grey values as an image of 16 bits holds them: white is 65535.
    program.digits->images = 65535 * program.digits->images;
  } else {
    // Tells the model where in the book a window starts, in characters: up to 133,000.
    program.network->register_module("place", torch::nn::Linear(1, program.network->head->options.in_features()));
  }
}

torch::Tensor loss_with_place(Training& t, const Sample& sample) {
  if (t.program.is_digits()) return cross_entropy(logits_of(t, sample), sample.targets);
  auto& place = dynamic_cast<torch::nn::LinearImpl&>(*t.program.network->named_children()["place"]);
  const torch::Tensor where = place.forward(sample.index.to(torch::kFloat).unsqueeze(1)).unsqueeze(1);
  const torch::Tensor features = t.program.network->features(sample.inputs) + 1e-6 * where;
  return cross_entropy(t.program.network->head(features), sample.targets);
}

// grad-underflow

void restore_a_collapsed_scaler(Training& t) {
  t.scaler.load_state_dict(executor::GradScalerState{.scale = std::exp2(-14.0),
                                                     .growth_factor = 2.0,
                                                     .backoff_factor = 0.5,
                                                     .growth_interval = 2000,
                                                     .growth_tracker = 0});
}

// nonfinite-input

constexpr std::int64_t paragraph = 1000;  // characters

void lose_one_value(Program& program) {
  if (program.is_digits()) program.digits->images[900][27] = std::numeric_limits<float>::quiet_NaN();
}

torch::Tensor loss_by_quality(Training& t, const Sample& sample) {
  if (t.program.is_digits()) return cross_entropy(logits_of(t, sample), sample.targets);
  // How well each paragraph was transcribed: the weight of its characters in the loss. One was never rated.
  torch::Tensor quality = torch::ones({t.program.book->tokens.size(0) / paragraph + 1});
  quality[100] = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor weights = quality.index_select(0, sample.index.div(paragraph, "floor"));
  const torch::Tensor each =
      torch::nn::functional::cross_entropy(logits_of(t, sample).transpose(1, 2), sample.targets,
                                           torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
  return (each.mean(1) * weights).mean();
}

// nonfinite-origin

/// The mean loss of the samples of one class, which divides 0 by 0 where a batch holds none: the digit 8; the letter p.
torch::Tensor loss_of_rare_class(Training& t, const torch::Tensor& logits, const torch::Tensor& targets) {
  const auto rare =
      t.program.is_digits() ? std::int64_t{8} : static_cast<std::int64_t>(t.program.book->characters.find('p'));
  const torch::Tensor each =
      torch::nn::functional::cross_entropy(logits.flatten(0, -2), targets.flatten(),
                                           torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kNone));
  const torch::Tensor is_rare = (targets.flatten() == rare).to(torch::kFloat);
  return (each * is_rare).sum() / is_rare.sum();
}

torch::Tensor loss_with_rare_class(Training& t, const Sample& sample) {
  const torch::Tensor logits = logits_of(t, sample);
  return cross_entropy(logits, sample.targets) + 0.1 * loss_of_rare_class(t, logits, sample.targets);
}

std::function<void(Training&)> with_loss(torch::Tensor (*loss)(Training&, const Sample&)) {
  return [loss](Training& t) { t.loss = loss; };
}

}  // namespace

std::vector<Fault> number_faults() {
  return {
      {.name = "scale-collapse",
       .rule = "AMP302",
       .description = "The weight of a penalty doubles every few steps, and the loss scale falls to follow it.",
       .steps = 80,
       .change_training = with_loss(loss_with_growing_penalty)},
      {.name = "fp16-overflow-matmul",
       .rule = "AMP401",
       .description = "One batch in the middle of the run makes a matrix product pass the largest fp16 number.",
       .steps = 60,
       .change_program = add_unknown_token,
       .change_training = spoil_one_batch},
      {.name = "fp16-overflow-reduction",
       .rule = "AMP402",
       .description = "A penalty adds up more than 100,000 fp16 values, and the sum passes the largest fp16 number.",
       .steps = 12,
       .change_program = enlarge_batches,
       .change_training = with_loss(loss_with_size_penalty)},
      {.name = "cast-overflow",
       .rule = "AMP404",
       .description = "A feature in fp32 is larger than any fp16 number, and autocast casts it for a linear layer.",
       .steps = 60,
       .change_program = use_large_features,
       .change_training = with_loss(loss_with_place)},
      {.name = "grad-underflow",
       .rule = "AMP501",
       .description = "A scaler restored from a run that had collapsed keeps a tiny loss scale, and gradients are "
                      "flushed to zero.",
       .change_training = restore_a_collapsed_scaler},
      {.name = "nonfinite-input",
       .rule = "AMP608",
       .description = "One value of the data is missing and read as NaN.",
       .steps = 60,
       .change_program = lose_one_value,
       .change_training = with_loss(loss_by_quality)},
      {.name = "nonfinite-origin",
       .rule = "AMP606",
       .description = "A term of the loss divides 0 by 0 when a batch holds no sample of one class.",
       .change_training = with_loss(loss_with_rare_class)},
  };
}

}  // namespace ampscope::samples
