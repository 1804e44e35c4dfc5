#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/service.h"

namespace ampscope::analyzers {

namespace {

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const std::vector<Service> services = scaler_services(view);
  for (const trace::Optimizer& optimizer : view.trace().optimizers) {
    std::vector<const Service*> chain;
    bool overlap = false;
    for (const Service& service : services) {
      if (!service.optimizers.contains(optimizer.id)) continue;
      overlap = overlap || (!chain.empty() && service.first_step <= chain.back()->last_step);
      chain.push_back(&service);
    }
    if (chain.size() < 2 || overlap) continue;
    StepSpan steps;
    std::int64_t resets = 0;
    std::int64_t skips = 0;
    double left = 0;
    double begun = 0;
    const trace::Scaler* culprit = nullptr;
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const trace::Scaler* const scaler = view.scaler(chain[i]->scaler);
      if (scaler == nullptr || scaler->restored) continue;
      if (resets == 0) {
        left = view.updates(chain[i - 1]->scaler).back()->scale_after;
        begun = view.updates(chain[i]->scaler).front()->scale_before;
        culprit = scaler;
      }
      ++resets;
      skips += leading_skips(view, chain[i]->scaler);
      extend(steps, {chain[i]->first_step, chain[i]->first_step, 1});
    }
    if (resets == 0) continue;
    Finding finding = context.finding();
    finding.culprit.op = "GradScaler";
    finding.culprit.phase = trace::Phase::scaler;
    if (culprit->created.known()) {
      finding.culprit.source = culprit->created;
    } else if (culprit->source.known()) {
      finding.culprit.source = culprit->source;
    }
    finding.steps = steps;
    finding.title = "a new scaler is made while the same optimizer goes on training";
    finding.message = fmt::format(
        "{} was served by {} scalers one after the other. The scale it had found ({}) was thrown away for {}, which "
        "cost "
        "{} at the beginning of the new ones.",
        optimizer_name(view, optimizer.id), chain.size(), scale(left), scale(begun), plural(skips, "skipped step"));
    finding.proof = fmt::format("{} scalers · scale {} → {} · {}", chain.size(), scale(left), scale(begun),
                                plural(skips, "skipped step"));
    finding.evidence = {{"scalers", static_cast<double>(chain.size())},
                        {"scale_left", left},
                        {"scale_begun", begun},
                        {"skips", static_cast<double>(skips)}};
    if (2 * skips >= view.steps()) {
      finding.severity = Severity::error;
      finding.message += fmt::format(" These are {} of all steps.",
                                     share(static_cast<double>(skips) / static_cast<double>(view.steps())));
    }
    finding.fix = "make the scaler once, beside the optimizer, and pass it to the function that runs an epoch";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp215;
const Rule rule_amp215 = {
    .code = "AMP215",
    .name = "scaler-recreated",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "a new scaler is made again and again for the same optimizer",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
