#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;

struct Bypass {
  StepSpan steps;
  std::int64_t site = trace::none;
  std::int64_t nonfinite_steps = 0;  ///< in which non-finite gradients went into the weights
  bool unscaled = false;             ///< unscale_ ran, only step() went around the scaler
};

std::map<std::int64_t, Bypass> find_bypasses(const TraceView& view) {
  std::map<std::int64_t, Bypass> found;
  if (unscaling_hook(view) != nullptr) return found;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind != trace::EventKind::optimizer_step) return;
    if ((event.flags & (event_flag::through_scaler | event_flag::fused)) != 0) return;
    const GradientState& gradients = before.of(event.object);
    if (!gradients.present || !gradients.certain || !gradients.scaled) return;
    // Divided by hand: by the scale itself, or the scale was read and the gradients were changed since backward.
    if (gradients.divided || (gradients.scale_read && gradients.written)) return;
    const bool nonfinite = (event.flags & event_flag::nonfinite_gradients) != 0 || gradients.found_inf;
    // Unscaled, then stepped without asking the scaler: wrong only when there was something to ask about.
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

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
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
    if (bypass.unscaled) {
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
    finding.fix = "scaler.step(optimizer); scaler.update()   instead of optimizer.step()";
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
