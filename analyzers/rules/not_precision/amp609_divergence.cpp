#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/growth.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// Values that no activation of a model that learns has, and from which fp32 and bf16 overflow in some more layers.
constexpr double explosive = 1e10;

/// Steps in which weights that are too large from the start show.
constexpr std::int64_t first_steps = 2;

/// An overflow, whatever the operator: infinities from finite inputs, or NaN (the difference of two infinities) from
/// inputs whose products pass the end of the type.
bool overflows(const Origin& origin) {
  // A copy overwrites its target, whatever that held.
  const auto& inputs = origin.event->inputs;
  const bool finite = origin.op == OpKind::cast
                          ? std::none_of(inputs.begin(), inputs.end(),
                                         [](const trace::WitnessTensor& input) { return input.stats.nonfinite() != 0; })
                          : inputs_finite(*origin.event);
  if (!made_here(origin) || !finite || divides_by_zero(origin) || mask_constant(origin)) return false;
  if (output_counts(*origin.event).infinite() != 0) return true;
  const double limit = trace::float_limits(compute_dtype(*origin.event, *origin.site)).max;
  return input_absmax(*origin.event).value_or(0) >= std::sqrt(limit);
}

/// In the first steps already, over the layers: the weights are too large from the start.
bool explodes_over_layers(const TraceView& view, const Origin& origin) {
  const trace::DType dtype = compute_dtype(*origin.event, *origin.site);
  const auto largest = input_absmax(*origin.event);
  if (dtype == trace::DType::float16 || !largest || *largest < explosive || origin.steps.first > first_steps)
    return false;
  // Not the data: the first layers had ordinary values.
  const auto& sites = view.trace().sites;
  return std::any_of(sites.begin(), sites.end(), [&](const trace::Site& site) {
    if (site.phase != trace::Phase::forward || op_kind(site.name) != OpKind::matmul) return false;
    const auto samples = growth_samples(view, site.id, origin.steps.first);
    const double here = samples.empty() ? view.totals(site.id).absmax : std::exp2(samples.front().exponent);
    return here > 0 && here < std::sqrt(explosive);
  });
}

/// Whether this is a weight, or a cast or a view of one.
bool comes_from_weight(const TraceView& view, const trace::TensorType& tensor) {
  constexpr int most_steps_back = 4;
  const trace::TensorType* at = &tensor;
  for (int i = 0; i < most_steps_back; ++i) {
    if (is_weight(view, *at)) return true;
    const trace::Site* const made = view.site(at->producer);
    const OpKind kind = made != nullptr ? op_kind(made->name) : OpKind::other;
    if ((kind != OpKind::cast && kind != OpKind::move) || made->inputs.empty()) return false;
    at = &made->inputs.front();
  }
  return false;
}

/// The largest value of a weight that went in, where no weight of a model that learns is so large; 0 otherwise. In the
/// first step it is how they were initialised.
double exploded_weight(const TraceView& view, const Origin& origin) {
  // Beyond the first no model has weights; beyond the second none whose products were ordinary when it began.
  constexpr double absurd_weight = 1e6;
  constexpr double large = 1e3;
  constexpr double ordinary = 655;  // a hundredth of the end of fp16
  const auto samples = growth_samples(view, origin.site->id, origin.steps.first);
  const bool began_small = !samples.empty() && std::exp2(samples.front().exponent) < ordinary;
  const double least = began_small ? large : absurd_weight;
  double largest = 0;
  for (const trace::WitnessTensor& input : origin.event->inputs) {
    if (!input.looked_at || input.stats.absmax < least) continue;
    if (comes_from_weight(view, input.type)) largest = std::max(largest, input.stats.absmax);
  }
  return origin.steps.first > 0 ? largest : 0;
}

Claim claim(const RuleContext& context, const Origin& origin) {
  const TraceView& view = context.view();
  if (!overflows(origin)) return Claim::none;
  if (exploded_weight(view, origin) > 0) return Claim::proven;
  if (explodes_over_layers(view, origin)) return Claim::proven;
  if (divergence_before(view, origin.steps.first)) return Claim::proven;
  return loss_growth_before(view, origin.steps.first) ? Claim::proven : Claim::none;
}

constexpr const char* lower_the_rate =
    "lower the learning rate, warm it up, or clip the gradients (torch.nn.utils.clip_grad_norm_); precision is not the "
    "cause, so a larger or smaller loss scale, bf16 or fp32 only move the step";

/// Where the first overflow was: "head passes the end of fp16".
std::string end_of(const TraceView& view, const Origin& origin, const char* verb) {
  return fmt::format("{} {} the end of {}", view.describe(origin.site->id), verb,
                     trace::short_dtype_name(compute_dtype(*origin.event, *origin.site)));
}

void tell_growth(const TraceView& view, const Origin& origin, const Divergence& growth, Finding& finding) {
  const double factor = growth.last / growth.first;
  finding.title = fmt::format("training diverges: activations grew {} times before they overflowed", number(factor));
  finding.message = fmt::format(
      "The results of {} grew from {} in step {} to {} in step {}; {} of {} layers grew like this. Then {}. A wider "
      "type overflows a little later.",
      view.describe(growth.site), number(growth.first), count_of(growth.first_step), number(growth.last),
      count_of(growth.last_step), count_of(growth.growing), count_of(growth.layers), end_of(view, origin, "passed"));
  finding.proof =
      fmt::format("{} → {} in {} steps · {} of {} layers grow", number(growth.first), number(growth.last),
                  count_of(growth.last_step - growth.first_step), count_of(growth.growing), count_of(growth.layers));
  finding.evidence = {{"growth", factor},
                      {"bits_per_step", growth.bits_per_step},
                      {"from_step", static_cast<double>(growth.first_step)},
                      {"to_step", static_cast<double>(growth.last_step)},
                      {"layers_growing", static_cast<double>(growth.growing)},
                      {"layers", static_cast<double>(growth.layers)}};
  finding.fix = lower_the_rate;
}

void tell_weights(const TraceView& view, const Origin& origin, double largest, Finding& finding) {
  finding.title =
      fmt::format("training diverges: weights had grown to {} when the first overflow came", number(largest));
  finding.message = fmt::format(
      "In step {} {}; weights hold values up to {} then, which only updates can have made so large. A wider type "
      "overflows a little later.",
      count_of(origin.steps.first), end_of(view, origin, "passes"), number(largest));
  finding.proof = fmt::format("weights up to {} in step {}", number(largest), count_of(origin.steps.first));
  finding.evidence = {{"largest_weight", largest}};
  finding.fix = lower_the_rate;
}

void tell_loss(const TraceView& view, const Origin& origin, const LossGrowth& growth, Finding& finding) {
  const double factor = growth.loss_last / growth.loss_first;
  finding.title = fmt::format("training diverges: the loss grew {} times before the first overflow", number(factor));
  finding.message = fmt::format(
      "The loss grew from {} in the first steps to {} in step {}, the norm of the gradients from {} to {}. Then {}. A "
      "wider type overflows a little later.",
      number(growth.loss_first), number(growth.loss_last), count_of(growth.last_step), number(growth.gradients_first),
      number(growth.gradients_last), end_of(view, origin, "passed"));
  finding.proof = fmt::format("loss {} → {} · gradients {} → {}", number(growth.loss_first), number(growth.loss_last),
                              number(growth.gradients_first), number(growth.gradients_last));
  finding.evidence = {{"growth", factor}, {"to_step", static_cast<double>(growth.last_step)}};
  finding.fix = lower_the_rate;
}

void tell_layers(const TraceView& view, const Origin& origin, Finding& finding) {
  const std::string type = trace::short_dtype_name(compute_dtype(*origin.event, *origin.site));
  const std::string largest = number(input_absmax(*origin.event).value_or(0));
  const bool updated = origin.steps.first > 0;
  finding.title = updated ? fmt::format("training diverges: after {} the activations overflow {}",
                                        plural(origin.steps.first, "step"), type)
                          : fmt::format("activations grow from layer to layer until they overflow {}", type);
  finding.message =
      fmt::format("In step {} the inputs of {} are up to {} already, and its result passes the end of {}: {}.",
                  count_of(origin.steps.first), view.describe(origin.site->id), largest, type,
                  updated ? "the updates so far have made the weights too large, or a rate inside the step has"
                          : "the weights are too large for the depth of the model");
  finding.proof = fmt::format("inputs up to {} in step {}", largest, count_of(origin.steps.first));
  finding.fix = updated ? "lower the learning rate, warm it up, or clip the gradients "
                          "(torch.nn.utils.clip_grad_norm_); no type of number helps"
                        : "initialise the weights for the depth (torch.nn.init.kaiming_normal_, xavier_uniform_), or "
                          "normalise between the layers; no type of number helps";
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  finding.precision_fault = false;
  const double weight = exploded_weight(view, origin);
  if (const auto growth = divergence_before(view, origin.steps.first)) {
    tell_growth(view, origin, *growth, finding);
  } else if (weight > 0) {
    tell_weights(view, origin, weight, finding);
  } else if (const auto loss = loss_growth_before(view, origin.steps.first)) {
    tell_loss(view, origin, *loss, finding);
  } else {
    tell_layers(view, origin, finding);
  }
  finding.message += describe_outcome(origin);
  add_scene(origin, finding);
}

constexpr std::array needs = {Stream::sentinel, Stream::numerics};
// Scaled gradients that went into the weights, and gradients that are summed for ever, blow them up.
constexpr std::array<std::string_view, 6> symptom_of = {"AMP204", "AMP205", "AMP208", "AMP214", "AMP219", "AMP221"};

}  // namespace

extern const Rule rule_amp609;
const Rule rule_amp609 = {
    .code = "AMP609",
    .name = "divergence",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "weights and activations grow by orders of magnitude before the first overflow",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
