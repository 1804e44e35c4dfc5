#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Refusal refusal = first_refusal(view, RefusalCause::closure);
  StepSpan steps = refusal.steps;
  std::int64_t site = refusal.site;
  std::int64_t optimizer = refusal.optimizer;
  bool scaled = false;
  if (steps.count == 0) {
    bool inside = false;
    walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
      if (event.kind == trace::EventKind::backward) {
        inside = (event.flags & event_flag::inside_step) != 0;
        scaled = scaled || (inside && (event.flags & event_flag::scaled) != 0);
      }
      if (event.kind != trace::EventKind::optimizer_step) return;
      const bool through = (event.flags & event_flag::through_scaler) != 0;
      if (inside && through) {
        if (site == trace::none) site = event.site;
        optimizer = event.object;
        extend(steps, span);
      }
      inside = false;
    });
  }
  if (steps.count == 0) return;
  const std::string name = optimizer_name(view, optimizer);
  const bool raised = refusal.steps.count > 0;
  Finding finding = context.finding();
  finding.culprit = context.culprit(site);
  finding.culprit.op = "GradScaler.step";
  finding.culprit.phase = trace::Phase::scaler;
  finding.steps = steps;
  finding.title = "an optimizer with a closure is stepped through the scaler";
  if (raised) {
    finding.message = fmt::format(
        "{} evaluates a closure inside its step, which the scaler does not support: it raised an exception.", name);
    finding.proof = "scaler.step refused a closure";
  } else {
    finding.message = fmt::format(
        "scaler.step unscales and checks the gradients that stand there before it; {} then runs a closure that makes "
        "new "
        "ones, which nobody unscales{} or checks.",
        name, scaled ? ", although its loss is scaled," : "");
    finding.proof = fmt::format("backward inside {}.step in {}{}", name, plural(steps.count, "step"),
                                scaled ? " · its loss is scaled" : "");
  }
  finding.evidence = {{"optimizer", name}, {"raised", raised ? 1.0 : 0.0}};
  if (const std::string words = last_words(view); raised && !words.empty())
    finding.evidence.emplace_back("exception", words);
  finding.fix =
      "autocast to bfloat16 without a scaler for optimizers that need a closure; others: run the closure first, then "
      "scaler.step(optimizer)";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp220;
const Rule rule_amp220 = {
    .code = "AMP220",
    .name = "closure-with-scaler",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "an optimizer that runs a closure is stepped through a scaler",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
