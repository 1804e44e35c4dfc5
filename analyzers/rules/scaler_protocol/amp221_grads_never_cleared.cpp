#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

struct Growth {
  StepSpan steps;     ///< that applied gradients which had been applied before
  bool used = false;  ///< the gradients that stand there have been applied
  bool again = false;
  std::int64_t site = trace::none;
  std::int64_t cleared_after = trace::none;  ///< last step in which they were cleared once it had begun
};

/// A zero_grad that sets gradients to None leaves no gradient to add to; only what fills with zeros must be believed.
bool clears(const TraceView& view, const trace::ProtocolEvent& event, std::int64_t optimizer) {
  if (event.object != trace::none) return event.object == optimizer;
  const trace::Site* const site = view.site(event.site);
  return site == nullptr || site->kind != trace::SiteKind::range;
}

std::map<std::int64_t, Growth> find_growth(const TraceView& view) {
  std::map<std::int64_t, Growth> found;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    switch (event.kind) {
      case EventKind::backward:
        if ((event.flags & event_flag::gradients_only) != 0) break;
        for (std::int64_t i = 0; i < 64; ++i) {
          if ((event.optimizers >> i & 1U) == 0) continue;
          Growth& growth = found[i];
          if ((event.added >> i & 1U) == 0) {
            if (growth.steps.count > 0) growth.cleared_after = span.last;
            growth.used = growth.again = false;
          } else if (growth.used) {
            growth.again = true;
          }
        }
        break;
      case EventKind::gradient_clear:
        for (auto& [optimizer, growth] : found) {
          if (!clears(view, event, optimizer)) continue;
          if (growth.steps.count > 0) growth.cleared_after = span.last;
          growth.used = growth.again = false;
        }
        break;
      case EventKind::optimizer_step: {
        Growth& growth = found[event.object];
        if (growth.again) {
          if (growth.site == trace::none) growth.site = event.site;
          extend(growth.steps, span);
        }
        growth.used = true;
        break;
      }
      default:
        break;
    }
  });
  return found;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const auto min_steps = static_cast<std::int64_t>(context.parameter("min_steps"));
  for (const auto& [optimizer, growth] : find_growth(view)) {
    // Gradients that are cleared now and then belong to accumulation windows.
    if (growth.steps.count < min_steps || growth.cleared_after >= growth.steps.first) continue;
    const std::string name = optimizer_name(view, optimizer);
    Finding finding = context.finding();
    finding.culprit = context.culprit(growth.site);
    finding.culprit.op = name + ".step";
    finding.culprit.phase = trace::Phase::optimizer;
    if (const trace::Optimizer* known = view.optimizer(optimizer); known != nullptr && known->source.known())
      finding.culprit.source = known->source;
    finding.steps = growth.steps;
    finding.title = "gradients are never cleared between steps";
    finding.message = fmt::format(
        "From step {} on, each backward pass adds to gradients that {} has already applied, so {} used the sum of all "
        "gradients so far. The same happens in fp32.",
        growth.steps.first, name, plural(growth.steps.count, "step"));
    finding.proof = fmt::format("not cleared since step {}", std::max<std::int64_t>(growth.steps.first - 1, 0));
    finding.evidence = {{"optimizer", name}, {"since_step", static_cast<double>(growth.steps.first)}};
    const auto first = view.gradient_norm(std::max<std::int64_t>(growth.steps.first - 1, 0), optimizer);
    const auto last = view.gradient_norm(growth.steps.last, optimizer);
    if (first && last && *first > 0) {
      finding.evidence.emplace_back("first_norm", *first);
      finding.evidence.emplace_back("last_norm", *last);
      finding.proof += fmt::format(" · norm {} → {}", number(*first), number(*last));
    }
    finding.fix = "optimizer.zero_grad()   after scaler.update(), or before the backward pass";
    finding.fix_cpp = "optimizer.zero_grad();   before the backward pass";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array parameters = {
    ParameterSpec{"min_steps", 3, 1, 1e6, true, "steps on gradients applied before that make it a fault"}};

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp221;
const Rule rule_amp221 = {
    .code = "AMP221",
    .name = "grads-never-cleared",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "gradients are not cleared between steps, so each step uses the sum of all earlier ones",
    .precision_fault = false,
    .needs = needs,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
