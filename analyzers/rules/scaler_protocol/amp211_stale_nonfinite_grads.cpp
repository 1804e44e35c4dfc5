#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;

/// Gradients that backward added to non-finite ones of an earlier step.
struct Stale {
  StepSpan steps;
  std::int64_t site = trace::none;
  bool finite = false;  ///< those of a pass of their own were finite
};

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  StepSpan steps;
  std::int64_t site = trace::none;
  std::int64_t finite = 0;  // steps whose own gradients were finite
  std::set<std::int64_t> optimizers;
  std::map<std::int64_t, Stale> stale;  // by optimizer: not yet used, perhaps to be cleared before that
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == trace::EventKind::gradient_clear) {
      if (event.object == trace::none) stale.clear();
      stale.erase(event.object);
    }
    if (event.kind == trace::EventKind::unscale || event.kind == trace::EventKind::optimizer_step ||
        event.kind == trace::EventKind::optimizer_skip) {
      const auto used = stale.find(event.object);
      if (used == stale.end()) return;
      optimizers.insert(event.object);
      if (site == trace::none) site = used->second.site;
      if (used->second.finite) finite += used->second.steps.count;
      extend(steps, used->second.steps);
      stale.erase(used);
    }
    if (event.kind != trace::EventKind::backward || (event.flags & event_flag::stale_nonfinite) == 0) return;
    for (std::int64_t i = 0; i < 64; ++i) {
      const GradientState& gradients = before.of(i);
      // Within a window an overflow stays until the window's end, rightly: the whole window is skipped.
      if ((event.added >> i & 1U) == 0 || !gradients.present || !(gradients.used || gradients.updated)) continue;
      Stale& here = stale[i];
      if (here.site == trace::none) here.site = event.site;
      here.finite = here.finite || (event.flags & event_flag::fresh_nonfinite) == 0;
      extend(here.steps, span);
    }
  });
  if (steps.count == 0 || finite == 0) return;
  Finding finding = context.finding();
  finding.steps = steps;
  finding.culprit = context.culprit(site);
  finding.culprit.op = "backward";
  finding.culprit.phase = trace::Phase::backward;
  finding.title = "non-finite gradients are kept and every later backward pass adds to them";
  finding.message = fmt::format(
      "From step {} on, the gradients of {} held NaN or infinities of an earlier step when backward added new ones. In "
      "{} the new gradients were finite: nothing is wrong with these batches, and no smaller loss scale will help.",
      steps.first, optimizer_name(view, *optimizers.begin()), plural(finite, "step"));
  finding.proof = fmt::format("since step {} · fresh gradients finite in {}", steps.first, plural(finite, "step"));
  finding.evidence = {{"since_step", static_cast<double>(steps.first)},
                      {"fresh_finite_steps", static_cast<double>(finite)}};
  finding.fix = "optimizer.zero_grad() in every iteration, also after a skipped step";
  findings.push_back(std::move(finding));
}

constexpr std::array<std::string_view, 1> symptom_of = {"AMP221"};

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp211;
const Rule rule_amp211 = {
    .code = "AMP211",
    .name = "stale-nonfinite-grads",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "non-finite values stand in .grad from an earlier step when backward adds to them",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
