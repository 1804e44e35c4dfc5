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

struct Late {
  StepSpan steps;
  std::int64_t site = trace::none;
  double factor = 1;  ///< largest by which gradients were wrong
  std::int64_t wrong_steps = 0;
};

/// Factor by which the loss scale changed in the update before the one of this step. `of`: the scaler that counts, none
/// for all of them.
double change_before(const TraceView& view, std::int64_t step, std::int64_t of) {
  double factor = 1;
  for (const trace::Scaler& scaler : view.trace().scalers) {
    if (of != trace::none && scaler.id != of) continue;
    for (const trace::ScalerUpdate* update : view.updates(scaler.id)) {
      if (update->step == step - 1 && update->scale_before > 0)
        factor = static_cast<double>(update->scale_after) / static_cast<double>(update->scale_before);
    }
  }
  return factor;
}

std::map<std::int64_t, Late> find_late(const TraceView& view) {
  std::map<std::int64_t, Late> found;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    const bool fused = (event.flags & event_flag::fused) != 0;
    if (event.kind != EventKind::unscale && !(event.kind == EventKind::optimizer_step && fused)) return;
    const GradientState& gradients = before.of(event.object);
    if (!gradients.present || !gradients.certain || !gradients.scaled || !gradients.updated) return;
    if (gradients.unscaled || gradients.used) return;
    Late& late = found[event.object];
    if (late.site == trace::none) late.site = event.site;
    for (std::int64_t step = span.first; step <= span.last && span.count == span.last - span.first + 1; ++step) {
      const double factor = change_before(view, step, gradients.scaler);
      if (factor == 1) continue;
      ++late.wrong_steps;
      if (late.factor == 1) late.factor = factor;
    }
    extend(late.steps, span);
  });
  return found;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const char* const fix = "step all optimizers of the iteration, then call scaler.update() once";
  if (const Refusal refusal = first_refusal(view, RefusalCause::update_again); refusal.steps.count > 0) {
    Finding finding = context.finding();
    finding.culprit = context.culprit(refusal.site);
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = refusal.steps;
    finding.title = "scaler.update() is called a second time in one iteration";
    finding.message =
        "Nothing has been unscaled since the update before, so there is nothing to decide by and the scaler raised an "
        "exception. A skipped step needs no second update: the first one has lowered the scale.";
    finding.proof = "two updates, no step between";
    finding.evidence = {{"raised", 1.0}};
    finding.fix = "one scaler.update() in every iteration, also after a skipped step";
    findings.push_back(std::move(finding));
  }
  for (const auto& [optimizer, late] : find_late(view)) {
    const std::string name = optimizer_name(view, optimizer);
    Finding finding = context.finding();
    finding.culprit = context.culprit(late.site);
    finding.culprit.op = "GradScaler.step";
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = late.steps;
    finding.title = "the scaler is updated before the last optimizer of the iteration has stepped";
    finding.message = fmt::format(
        "The gradients of {} were scaled before an update and are unscaled after it, with the scale that follows.",
        name);
    if (late.wrong_steps > 0) {
      finding.message += fmt::format(" In {} the two differ: gradients were wrong by a factor of {}.",
                                     plural(late.wrong_steps, "step"), number(1 / late.factor));
      finding.proof = fmt::format("{} saw another scale in {} · factor {}", name, plural(late.wrong_steps, "step"),
                                  number(1 / late.factor));
    } else {
      finding.message += " So far the scale has not changed in between; when it does, they are wrong by that factor.";
      finding.proof = fmt::format("{} steps after the update · scale unchanged so far", name);
    }
    finding.evidence = {
        {"optimizer", name}, {"factor", 1 / late.factor}, {"wrong_steps", static_cast<double>(late.wrong_steps)}};
    finding.fix = fix;
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp207;
const Rule rule_amp207 = {
    .code = "AMP207",
    .name = "multiple-updates-per-iteration",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "the scaler is updated more than once between a backward pass and the last step",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
