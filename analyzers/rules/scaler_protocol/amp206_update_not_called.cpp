#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

void evaluate_refusals(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const RefusalCause cause :
       {RefusalCause::update_missing, RefusalCause::step_again, RefusalCause::unscale_after_step}) {
    const Refusal refusal = first_refusal(view, cause);
    if (refusal.steps.count == 0) continue;
    const std::string name = optimizer_name(view, refusal.optimizer);
    const std::string earlier = view.place(view.source_of(refusal.earlier_site));
    Finding finding = context.finding();
    finding.culprit = context.culprit(refusal.site);
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = refusal.steps;
    finding.evidence = {{"raised", 1.0}, {"optimizer", name}, {"earlier_call", earlier}};
    if (const std::string words = last_words(view); !words.empty()) finding.evidence.emplace_back("exception", words);
    finding.proof = fmt::format("no update() since {}", earlier.empty() ? "the last call" : earlier);
    switch (cause) {
      case RefusalCause::step_again:
        finding.title = "scaler.step is called twice for one backward pass";
        finding.message = fmt::format("{} had been stepped at {} and no backward pass has run since.", name, earlier);
        finding.fix = "call scaler.step(optimizer) once for each optimizer, then scaler.update()";
        break;
      case RefusalCause::unscale_after_step:
        finding.title = "unscale_ is called after the step it should prepare";
        finding.message = fmt::format("{} had been stepped at {}; its gradients are used up by then.", name, earlier);
        finding.fix = "scaler.unscale_(optimizer); clip; scaler.step(optimizer); scaler.update()   in this order";
        break;
      default:
        finding.title = "an iteration ends without scaler.update()";
        finding.message = fmt::format(
            "{} was unscaled or stepped at {}, and a new iteration came to it before scaler.update() was called: for "
            "the scaler it is still the same iteration, so it raised an exception.",
            name, earlier);
        finding.fix = "scaler.update() at the end of every iteration, also of one whose step is left out";
        break;
    }
    findings.push_back(std::move(finding));
  }
}

/// Steps through a scaler that is never updated: made anew each time, or not PyTorch's.
void evaluate_frozen(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (view.any_event(EventKind::scaler_update) || !view.scaled()) return;
  StepSpan steps;
  std::int64_t site = trace::none;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    const bool through = event.kind == EventKind::optimizer_skip ||
                         (event.kind == EventKind::optimizer_step && (event.flags & event_flag::through_scaler) != 0);
    if (!through) return;
    if (site == trace::none) site = event.site;
    extend(steps, span);
  });
  if (steps.count < 3) return;
  Finding finding = context.finding();
  finding.culprit = context.culprit(site);
  finding.culprit.op = "GradScaler.step";
  finding.culprit.phase = trace::Phase::scaler;
  finding.steps = steps;
  finding.title = "the scaler is never updated";
  finding.message = fmt::format(
      "{} went through a scaler, but update() was never called: the loss scale stays what it was, however many steps "
      "are skipped.",
      plural(steps.count, "step"));
  finding.proof = fmt::format("{} · 0 updates", plural(steps.count, "step"));
  finding.evidence = {{"raised", 0.0}, {"steps", static_cast<double>(steps.count)}};
  finding.fix = "scaler.update() at the end of every iteration";
  findings.push_back(std::move(finding));
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  evaluate_refusals(context, findings);
  if (findings.empty()) evaluate_frozen(context, findings);
}

constexpr std::array needs = {Stream::protocol};
// An update before the step leaves the step open: one wrong order, told by what it does to the gradients.
constexpr std::array<std::string_view, 1> symptom_of = {"AMP205"};

}  // namespace

extern const Rule rule_amp206;
const Rule rule_amp206 = {
    .code = "AMP206",
    .name = "update-not-called",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "step or unscale_ of one iteration meets another without update() between",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
