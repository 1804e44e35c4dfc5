#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const SkipAnalysis& skips : context.skips()) {
    const bool healthy = std::all_of(skips.skips.begin(), skips.skips.end(), [&](const Skip& skip) {
      return context.by_design(skip) && view.skipped(skip.step);
    });
    if (skips.skips.empty() || skips.collapsed || skips.saw_tooth || !healthy) continue;
    const std::int64_t settling = skips.count(SkipKind::settling);
    const auto all = static_cast<std::int64_t>(skips.skips.size());
    Finding finding = context.finding();
    finding.steps = {skips.skips.front().step, skips.skips.back().step, all};
    finding.culprit.op = "GradScaler.update";
    finding.culprit.phase = trace::Phase::scaler;
    if (const trace::Scaler* const scaler = view.scaler(skips.scaler); scaler != nullptr && scaler->source.known()) {
      finding.culprit.source = scaler->source;
    }
    finding.evidence = {{"skipped_steps", static_cast<double>(all)},
                        {"first_scale", skips.first_scale},
                        {"settled_scale", skips.settled_scale},
                        {"probes", static_cast<double>(skips.count(SkipKind::probe))}};
    if (skips.settled_step == trace::none) {
      finding.title = fmt::format("the loss scale is still settling after {}", plural(all, "skipped step"));
      finding.message = "A scaler starts with a large scale and skips steps until it fits. The run ended before that.";
      finding.proof = fmt::format("scale {} → {} in {}", scale(skips.first_scale), scale(skips.last_scale),
                                  plural(skips.updates, "update"));
      finding.fix = "nothing to do; a longer run shows where it settles";
    } else if (settling > 0) {
      finding.title = fmt::format("the loss scale settled at {} after {}", scale(skips.settled_scale),
                                  plural(settling, "skipped step"));
      finding.message = "A scaler starts with a large scale and skips steps until it fits. Nothing is wrong.";
      finding.proof = fmt::format("scale {} → {}", scale(skips.first_scale), scale(skips.settled_scale));
      if (all > settling)
        finding.proof += fmt::format(" · {} later, as it tried larger ones", plural(all - settling, "skip"));
      // A little above, so that the next run still looks for the largest scale that fits.
      const trace::Scaler* const scaler = view.scaler(skips.scaler);
      finding.fix =
          scaler != nullptr && scaler->restored
              ? "nothing to do"
              : fmt::format("nothing to do; GradScaler(init_scale={:g}) would save the skips", skips.settled_scale);
    } else {
      finding.title = fmt::format("the scaler skipped {}, as it is meant to", plural(all, "step"));
      finding.message =
          "The scale is raised now and then to see whether more fits; the step that overflows is skipped. Nothing is "
          "wrong.";
      finding.proof = fmt::format("{} in {}", plural(all, "skip"), plural(skips.updates, "update"));
      finding.fix = "nothing to do";
    }
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP802"};

}  // namespace

extern const Rule rule_amp301;
const Rule rule_amp301 = {
    .code = "AMP301",
    .name = "calibration-ok",
    .family = Family::scaler_dynamics,
    .severity = Severity::info,
    .summary = "the only skipped steps are those a scaler makes by design",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
