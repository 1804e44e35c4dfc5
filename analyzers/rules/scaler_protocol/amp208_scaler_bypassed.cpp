#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/core/scalars.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;

constexpr double default_init_scale = 65536;  // of torch.amp.GradScaler

struct Bypass {
  StepSpan steps;
  std::int64_t site = trace::none;
  std::int64_t nonfinite_steps = 0;  ///< in which non-finite gradients went into the weights
  bool unscaled = false;             ///< unscale_ ran, only step() went around the scaler
  bool twice = false;                ///< and then the scaler stepped again with the same gradients
};

std::map<std::int64_t, Bypass> find_bypasses(const TraceView& view) {
  std::map<std::int64_t, Bypass> found;
  if (unscaling_hook(view) != nullptr) return found;
  std::map<std::int64_t, std::int64_t> direct;  // by optimizer, the site of a direct step on unscaled gradients
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == trace::EventKind::backward) direct.clear();
    if (event.kind != trace::EventKind::optimizer_step) return;
    if ((event.flags & event_flag::through_scaler) != 0) {
      const auto known = direct.find(event.object);
      if (known == direct.end()) return;
      Bypass& bypass = found[event.object];
      bypass.unscaled = bypass.twice = true;
      if (bypass.site == trace::none) bypass.site = known->second;
      extend(bypass.steps, span);
      return;
    }
    if ((event.flags & event_flag::fused) != 0) return;
    const GradientState& gradients = before.of(event.object);
    if (!gradients.present || !gradients.certain || !gradients.scaled) return;
    // Divided by hand: by the scale itself, or the scale was read and the gradients were changed since backward.
    if (gradients.divided || (gradients.scale_read && gradients.written)) return;
    const bool nonfinite = (event.flags & event_flag::nonfinite_gradients) != 0 || gradients.found_inf;
    // Unscaled, then stepped without asking the scaler: wrong only when there was something to ask about.
    if (gradients.unscaled) direct[event.object] = event.site;
    if (gradients.unscaled && !nonfinite) return;
    Bypass& bypass = found[event.object];
    if (bypass.steps.count == 0) bypass.unscaled = gradients.unscaled;
    if (bypass.site == trace::none) bypass.site = event.site;
    if (nonfinite) bypass.nonfinite_steps += span.count;
    bypass.unscaled = bypass.unscaled && gradients.unscaled;
    extend(bypass.steps, span);
  });
  return found;
}

/// The number that an update by hand multiplies gradients by, where `read` looks at gradients and `write` changes a
/// parameter: one call (p.add_(p.grad, alpha=-lr)) or two (p -= lr * p.grad). nullopt: they have to do with each other
/// in another way or not at all.
std::optional<double> rate_of(const trace::Site& read, const trace::Site& write) {
  if (read.id == write.id) return std::abs(scalar_named(write, "alpha").value_or(1));
  const bool given = std::any_of(write.inputs.begin(), write.inputs.end(),
                                 [&](const trace::TensorType& input) { return input.producer == read.id; });
  const double factor = factor_of(read);
  return given && factor != 0 ? std::optional(std::abs(factor)) : std::nullopt;
}

/// Updates without an optimizer: gradients of a scaled loss go into parameters as they are. The learning rate may hold
/// the division, so it is one only where what is left would be no learning rate that trains anything.
Bypass find_updates_by_hand(const TraceView& view) {
  constexpr double largest_rate = 10;
  Bypass found;
  if (unscaling_hook(view) != nullptr) return found;
  bool scaled = false;
  std::set<std::int64_t> reads;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    const bool inverse = (event.flags & event_flag::by_inverse_scale) != 0;
    switch (event.kind) {
      case trace::EventKind::backward:
        scaled = (event.flags & event_flag::scaled) != 0;
        reads.clear();
        break;
      case trace::EventKind::unscale:
      case trace::EventKind::scale_read:
        scaled = false;
        break;
      case trace::EventKind::gradient_write:
        scaled = scaled && !inverse;
        break;
      case trace::EventKind::gradient_read:
        if (inverse) scaled = false;
        if ((event.flags & event_flag::scaled) != 0) reads.insert(event.site);
        break;
      case trace::EventKind::parameter_write: {
        const trace::Site* const write = view.site(event.site);
        if (!scaled || write == nullptr) break;
        const double scale = view.scale_at(span.first).value_or(default_init_scale);
        const bool takes_scaled = std::any_of(reads.begin(), reads.end(), [&](std::int64_t site) {
          const trace::Site* const read = view.site(site);
          const std::optional<double> rate = read != nullptr ? rate_of(*read, *write) : std::nullopt;
          return rate && *rate * scale > largest_rate;
        });
        if (!takes_scaled) break;
        if (found.site == trace::none) found.site = event.site;
        extend(found.steps, span);
        break;
      }
      default:
        break;
    }
  });
  return found;
}

void report_by_hand(const RuleContext& context, const Bypass& bypass, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  Finding finding = context.finding();
  finding.steps = bypass.steps;
  finding.culprit = context.culprit(bypass.site);
  finding.culprit.phase = trace::Phase::optimizer;
  finding.title = "parameters are updated by hand with gradients that are still multiplied by the loss scale";
  const double factor = view.scale_at(bypass.steps.first).value_or(default_init_scale);
  finding.message = fmt::format(
      "The loss is scaled, and {} puts its gradients into the weights as they are: {} times too large, and also where "
      "they are not finite.",
      view.describe(bypass.site), scale(factor));
  finding.proof = fmt::format("gradients {} times too large · {}", scale(factor), plural(bypass.steps.count, "step"));
  finding.evidence = {{"factor", factor}};
  finding.fix =
      "an optimizer, with scaler.step(optimizer); scaler.update() — or divide by scaler.get_scale() and leave out "
      "steps with non-finite gradients";
  findings.push_back(std::move(finding));
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (const Bypass by_hand = find_updates_by_hand(view); by_hand.steps.count > 0)
    report_by_hand(context, by_hand, findings);
  for (const auto& [optimizer, bypass] : find_bypasses(view)) {
    const trace::Optimizer* const known = view.optimizer(optimizer);
    const std::string name = known != nullptr && !known->name.empty() ? known->name : "the optimizer";
    Finding finding = context.finding();
    finding.steps = bypass.steps;
    finding.culprit = context.culprit(bypass.site);
    finding.culprit.op = name + ".step";
    finding.culprit.phase = trace::Phase::optimizer;
    if (known != nullptr && known->source.known()) finding.culprit.source = known->source;
    const std::optional<double> factor = view.scale_at(bypass.steps.first);
    if (bypass.twice) {
      finding.title = "an optimizer steps twice in an iteration: directly, and again through the scaler";
      finding.message = fmt::format(
          "{}.step() is called directly after unscale_, and scaler.step() steps again with the same gradients. The "
          "direct step also takes gradients that are not finite.",
          name);
    } else if (bypass.unscaled) {
      finding.title = "an optimizer steps on non-finite gradients that the scaler would have skipped";
      finding.message = fmt::format(
          "{}.step() is called directly after unscale_, so steps with non-finite gradients are not skipped.", name);
    } else {
      finding.title = "an optimizer steps on gradients that are still multiplied by the loss scale";
      finding.message = fmt::format(
          "The loss is scaled, but {}.step() is called directly: neither are gradients divided by the scale", name);
      if (factor) finding.message += fmt::format(" ({})", scale(*factor));
      finding.message += ", nor are steps with non-finite gradients skipped.";
      if (factor) finding.evidence.emplace_back("factor", *factor);
      if (factor) finding.proof = fmt::format("gradients {} times too large", scale(*factor));
    }
    finding.evidence.emplace_back("optimizer", name);
    finding.evidence.emplace_back("nonfinite_steps", static_cast<double>(bypass.nonfinite_steps));
    if (finding.proof.empty()) finding.proof = fmt::format("{} so far", plural(bypass.steps.count, "such step"));
    if (const auto norm = view.gradient_norm(bypass.steps.first, optimizer); norm && !bypass.unscaled) {
      finding.evidence.emplace_back("gradient_norm_applied", *norm);
      finding.proof += fmt::format(" · gradient norm {}", number(*norm));
    }
    finding.proof += bypass.nonfinite_steps == 0
                         ? std::string(" · none of them non-finite")
                         : fmt::format(" · non-finite in {}", plural(bypass.nonfinite_steps, "step"));
    finding.fix = bypass.twice ? "leave out optimizer.step(): scaler.step(optimizer) calls it"
                               : "scaler.step(optimizer); scaler.update()   instead of optimizer.step()";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp208;
const Rule rule_amp208 = {
    .code = "AMP208",
    .name = "scaler-bypassed",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "optimizer.step() is called directly in an iteration the scaler owns",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
