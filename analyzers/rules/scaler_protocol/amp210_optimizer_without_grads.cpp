#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
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
    .summary = "scaler.step is called for an optimizer that has no gradients",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
