#include <array>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::EventKind;

/// What one scaler was used for, by thread.
struct Use {
  std::set<int> threads;
  std::set<std::string> calls;
  std::int64_t site = trace::none;
  StepSpan steps;
};

const char* call_of(EventKind kind) {
  switch (kind) {
    case EventKind::scale_loss:
      return "scale";
    case EventKind::scaler_update:
      return "update";
    case EventKind::unscale:
      return "unscale_";
    default:
      return nullptr;
  }
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  std::map<std::int64_t, Use> uses;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    const char* const call = call_of(event.kind);
    const trace::Site* const site = view.site(event.site);
    if (call == nullptr || site == nullptr) return;
    std::int64_t scaler = event.object;
    if (event.kind == EventKind::unscale) {
      // The event names the optimizer; with one scaler there is no doubt whose it is.
      if (view.trace().scalers.size() != 1) return;
      scaler = 0;
    }
    if (scaler < 0) scaler = view.trace().scalers.size() == 1 ? 0 : scaler;
    if (scaler < 0) return;
    Use& use = uses[scaler];
    use.threads.insert(site->thread);
    use.calls.insert(call);
    if (use.site == trace::none || site->thread != 0) use.site = event.site;
    extend(use.steps, span);
  });
  for (const auto& [id, use] : uses) {
    const trace::Scaler* const scaler = view.scaler(id);
    if (use.threads.size() < 2 || scaler == nullptr || !scaler->enabled) continue;
    Finding finding = context.finding();
    finding.title = "one scaler is used from several threads";
    finding.culprit = context.culprit(use.site);
    finding.culprit.op = fmt::format("GradScaler.{}", *use.calls.begin());
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = use.steps;
    finding.message = fmt::format(
        "{} threads call {} of the same {}. Its scale, its growth tracker and what it remembers of each optimizer "
        "belong to one "
        "loop: a thread sees the scale that another one's update has just changed.",
        use.threads.size(), fmt::join(use.calls, ", "), scaler->implementation);
    finding.proof = fmt::format("{} threads · {}", use.threads.size(), fmt::join(use.calls, ", "));
    finding.evidence = {{"threads", static_cast<double>(use.threads.size())},
                        {"calls", fmt::format("{}", fmt::join(use.calls, ", "))},
                        {"scaler", static_cast<double>(id)}};
    finding.fix = "one GradScaler for each thread, or step and update in one thread after all have run backward";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp803;
const Rule rule_amp803 = {
    .code = "AMP803",
    .name = "shared-scaler",
    .family = Family::processes,
    .severity = Severity::error,
    .summary = "one scaler is used from several threads or replicas",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
