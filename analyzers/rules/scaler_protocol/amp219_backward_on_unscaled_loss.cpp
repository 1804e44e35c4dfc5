#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

struct Unscaled {
  StepSpan steps;
  std::int64_t loss_site = trace::none;
  bool mixed = false;  ///< another loss of the same step was scaled
};

std::map<std::int64_t, Unscaled> find_unscaled(const TraceView& view) {
  std::map<std::int64_t, Unscaled> found;
  std::map<std::int64_t, std::int64_t> plain_sites;  // latest pass of an unscaled loss, by optimizer
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == EventKind::backward && (event.flags & event_flag::scaled) == 0) {
      for (std::int64_t i = 0; i < 64; ++i) {
        if ((event.optimizers >> i & 1U) != 0) plain_sites[i] = event.site;
      }
    }
    if (event.kind != EventKind::unscale) return;
    const GradientState& gradients = before.of(event.object);
    if (!gradients.present || !gradients.certain || !gradients.plain || gradients.unscaled || gradients.used) return;
    if (view.scale_at(span.first).value_or(1) == 1) return;
    Unscaled& unscaled = found[event.object];
    if (unscaled.loss_site == trace::none) {
      const auto site = plain_sites.find(event.object);
      if (site != plain_sites.end()) unscaled.loss_site = site->second;
    }
    unscaled.mixed = unscaled.mixed || gradients.any_scaled;
    extend(unscaled.steps, span);
  });
  return found;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const char* const fix = "scaler.scale(loss).backward()   instead of loss.backward()";
  if (const Refusal refusal = first_refusal(view, RefusalCause::unscaled_loss); refusal.steps.count > 0) {
    Finding finding = context.finding();
    finding.culprit = context.culprit(refusal.site);
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = refusal.steps;
    finding.title = "the scaler is used but no loss was ever scaled";
    finding.message =
        "Backward started from the loss itself, so the scaler has no scale to divide by and raised an exception.";
    finding.proof = "no scaler.scale(loss) before scaler.step(optimizer)";
    finding.evidence = {{"raised", 1.0}};
    finding.fix = fix;
    findings.push_back(std::move(finding));
  }
  // A compiled region may scale where nobody sees it.
  if (!view.trace().hidden_regions.empty() && !view.any_event(EventKind::scale_loss)) return;
  for (const auto& [optimizer, unscaled] : find_unscaled(view)) {
    if (unscaled.steps.count < 2 && view.steps() > 2) continue;
    const double factor = view.scale_at(unscaled.steps.first).value_or(1);
    const std::string name = optimizer_name(view, optimizer);
    Finding finding = context.finding();
    finding.culprit = context.culprit(unscaled.loss_site);
    finding.culprit.op = "backward";
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = unscaled.steps;
    finding.title = unscaled.mixed ? "one of several losses is not scaled, but its gradients are unscaled"
                                   : "the loss is not scaled, but its gradients are unscaled";
    finding.message = fmt::format(
        "A backward pass that reaches {} starts from a loss that is not multiplied by the loss scale; its gradients "
        "are "
        "divided by {} all the same.",
        name, scale(factor));
    finding.proof =
        fmt::format("gradients {} times too small in {}", scale(factor), plural(unscaled.steps.count, "step"));
    finding.evidence = {{"factor", factor}, {"optimizer", name}, {"other_loss_scaled", unscaled.mixed ? 1.0 : 0.0}};
    finding.fix = fix;
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp219;
const Rule rule_amp219 = {
    .code = "AMP219",
    .name = "backward-on-unscaled-loss",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "gradients of a loss that was not scaled are divided by the loss scale",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
