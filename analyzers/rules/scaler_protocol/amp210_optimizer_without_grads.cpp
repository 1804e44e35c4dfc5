#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

/// Steps that an optimizer took with gradients that had been filled with zeros since the backward pass.
struct Cleared {
  StepSpan steps;
  std::int64_t clear_site = trace::none;
  std::int64_t other_steps = 0;  ///< with gradients
};

std::map<std::int64_t, Cleared> steps_on_cleared(const TraceView& view) {
  std::map<std::int64_t, Cleared> found;
  std::map<std::int64_t, std::int64_t> cleared_at;  // by optimizer, of gradients that no step had used
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    switch (event.kind) {
      case trace::EventKind::backward:
        if ((event.flags & trace::event_flag::gradients_only) != 0) break;
        for (std::int64_t i = 0; i < 64; ++i) {
          if (event.optimizers == 0 || (event.optimizers >> i & 1U) != 0) cleared_at.erase(i);
        }
        break;
      case trace::EventKind::gradient_clear:
        for (const std::int64_t optimizer : concerned(event, before)) {
          const GradientState& gradients = before.of(optimizer);
          if (gradients.present && gradients.certain && !gradients.used) cleared_at[optimizer] = event.site;
        }
        break;
      case trace::EventKind::gradient_write:
        cleared_at.clear();  // something may have been put there
        break;
      case trace::EventKind::optimizer_step: {
        const auto cleared = cleared_at.find(event.object);
        Cleared& steps = found[event.object];
        if (cleared == cleared_at.end()) {
          steps.other_steps += span.count;
          break;
        }
        steps.clear_site = cleared->second;
        extend(steps.steps, span);
        cleared_at.erase(cleared);
        break;
      }
      default:
        break;
    }
  });
  return found;
}

void report_cleared(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const auto& [optimizer, cleared] : steps_on_cleared(view)) {
    if (cleared.steps.count < 3 || cleared.other_steps > cleared.steps.count / 4) continue;
    Finding finding = context.finding();
    const std::string name = optimizer_name(view, optimizer);
    const std::string place = view.place(view.source_of(cleared.clear_site));
    finding.culprit = context.culprit(cleared.clear_site);
    finding.culprit.op = "zero_grad";
    finding.culprit.phase = trace::Phase::optimizer;
    finding.steps = cleared.steps;
    finding.title = "gradients are cleared between the backward pass and the optimizer's step";
    finding.message = fmt::format(
        "{} stepped {} with gradients that had been cleared{}{} after the backward pass: nothing is learned from it.",
        name, plural(cleared.steps.count, "time"), place.empty() ? "" : " at ", place);
    finding.proof = fmt::format("backward, then cleared{}{}, then step", place.empty() ? "" : " at ", place);
    finding.evidence = {{"optimizer", name}, {"cleared_at", place}};
    finding.fix = "optimizer.zero_grad() before the backward pass or after the step, not between";
    findings.push_back(std::move(finding));
  }
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  report_cleared(context, findings);
  const TraceView& view = context.view();
  const Refusal refusal = first_refusal(view, RefusalCause::no_gradients);
  if (refusal.steps.count == 0) return;
  const std::string name = optimizer_name(view, refusal.optimizer);
  Finding finding = context.finding();
  finding.culprit = context.culprit(refusal.site);
  finding.culprit.op = "GradScaler.step";
  finding.culprit.phase = trace::Phase::scaler;
  finding.steps = refusal.steps;
  finding.evidence = {{"optimizer", name}, {"raised", 1.0}};
  if (const std::string words = last_words(view); !words.empty()) finding.evidence.emplace_back("exception", words);
  if (refusal.backward && refusal.cleared) {
    const std::string place = view.place(view.source_of(refusal.clear_site));
    finding.title = "gradients are cleared between the backward pass and scaler.step";
    finding.message = fmt::format("{} has no gradients, because they were cleared at {} after the backward pass.", name,
                                  place.empty() ? "a place unknown" : place);
    finding.proof = fmt::format("backward, then cleared{}{}, then step", place.empty() ? "" : " at ", place);
    finding.fix = "optimizer.zero_grad() before the backward pass or after scaler.update(), not between";
    finding.evidence.emplace_back("cleared_at", place);
    if (!place.empty()) finding.culprit = context.culprit(refusal.clear_site);
  } else if (refusal.backward) {
    finding.title = "scaler.step is called for an optimizer whose parameters got no gradient";
    finding.message = fmt::format(
        "A backward pass has run, but it reached none of the parameters of {}: they take no part in the loss, or the "
        "optimizer holds those of a model that was replaced, moved or frozen after it was made.",
        name);
    finding.proof = fmt::format("backward reached no parameter of {}", name);
    finding.fix = "make the optimizer from the parameters that are trained, after the model is in its final place";
  } else {
    finding.title = "scaler.step is called without a backward pass";
    finding.message = fmt::format("No backward pass has run since the last step, so {} has no gradients.", name);
    finding.proof = "no backward pass since the last step";
    finding.fix = "scaler.scale(loss).backward()   before scaler.step(optimizer)";
  }
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp210;
const Rule rule_amp210 = {
    .code = "AMP210",
    .name = "optimizer-without-grads",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "an optimizer is stepped that has no gradients, or has them cleared just before",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
