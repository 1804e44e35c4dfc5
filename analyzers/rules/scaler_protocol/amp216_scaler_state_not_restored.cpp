#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/service.h"

namespace ampscope::analyzers {

namespace {

/// Scale that an earlier scaler of this process left, before this one began.
std::optional<double> scale_before(const TraceView& view, const std::vector<Service>& services,
                                   const Service& service) {
  std::optional<double> result;
  for (const Service& earlier : services) {
    if (earlier.last_step < service.first_step) result = view.updates(earlier.scaler).back()->scale_after;
  }
  return result;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const std::vector<Service> services = scaler_services(view);
  for (const Service& service : services) {
    const trace::Scaler* const scaler = view.scaler(service.scaler);
    const trace::Optimizer* restored = nullptr;
    for (const std::int64_t id : service.optimizers) {
      const trace::Optimizer* const optimizer = view.optimizer(id);
      if (optimizer != nullptr && optimizer->restored) restored = optimizer;
    }
    if (scaler == nullptr || scaler->restored || restored == nullptr) continue;
    const auto updates = view.updates(service.scaler);
    const double begun = updates.front()->scale_before;
    const std::int64_t skips = leading_skips(view, service.scaler);
    const auto left = scale_before(view, services, service);
    const bool differs = left && *left > 0 && std::abs(std::log2(begun / *left)) >= 1;
    // A scale that is as good as the one before, or that nothing is known against.
    if (skips == 0 && !differs) continue;
    Finding finding = context.finding();
    finding.culprit.op = "GradScaler.load_state_dict";
    finding.culprit.phase = trace::Phase::scaler;
    if (scaler->created.known()) {
      finding.culprit.source = scaler->created;
    } else if (scaler->source.known()) {
      finding.culprit.source = scaler->source;
    }
    finding.steps = {service.first_step, service.first_step + std::max<std::int64_t>(skips - 1, 0),
                     std::max<std::int64_t>(skips, 1)};
    finding.title = "a resumed run starts from the initial loss scale";
    const std::string former = left ? fmt::format(" although the run had come to {}", scale(*left)) : "";
    finding.message = fmt::format("{} was restored from a checkpoint, but the scaler began at {}{} and skipped {}.",
                                  optimizer_name(view, restored->id), scale(begun), former, plural(skips, "step"));
    finding.proof = left ? fmt::format("scale {} → {} · {}", scale(*left), scale(begun), plural(skips, "skipped step"))
                         : fmt::format("scale {} · {}", scale(begun), plural(skips, "skipped step"));
    finding.evidence = {{"scale", begun}, {"skips", static_cast<double>(skips)}};
    if (left) finding.evidence.emplace_back("scale_before", *left);
    finding.fix =
        "save scaler.state_dict() with the model and the optimizer, and scaler.load_state_dict(...) when resuming";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp216;
const Rule rule_amp216 = {
    .code = "AMP216",
    .name = "scaler-state-not-restored",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "the optimizer was restored from a checkpoint, the scaler starts from its initial scale",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
