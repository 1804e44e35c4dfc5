#include <array>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/tuning_report.h"

namespace ampscope::analyzers {

namespace {

std::string changes(const Tuning& tuning) {
  std::string text;
  for (const SettingChoice& choice : tuning.choices) {
    if (choice.today == choice.recommended) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", choice.name,
                        choice.name == "init_scale" ? scale(choice.recommended) : number(choice.recommended));
  }
  return text;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const SkipAnalysis& skips : context.skips()) {
    const std::optional<Tuning>& tuning = context.tuning(skips.scaler);
    if (!tuning || !tuning->changed || skips.collapsed || tuning->no_scale_fits) continue;
    // Without a look at every step, and without a part kept back, this would be guesswork.
    if (tuning->measured < 0.5 || tuning->predicted_today.kept_back.updates == 0) continue;
    const PredictedLoss& today = tuning->predicted_today.whole;
    const PredictedLoss& better = tuning->predicted_recommended.whole;
    const std::int64_t saved = today.skips - better.skips;
    const double kept = today.flushed_share() - better.flushed_share();
    const double gain = today.lost() - better.lost();
    if (gain < context.parameter("min_gain")) continue;
    if (static_cast<double>(saved) < context.parameter("min_steps") && kept < context.parameter("min_gain")) continue;
    Finding finding = context.finding();
    const auto updates = view.updates(skips.scaler);
    finding.steps = {updates.front()->step, updates.back()->step, static_cast<std::int64_t>(updates.size())};
    finding.culprit.op = "GradScaler";
    finding.culprit.phase = trace::Phase::scaler;
    const trace::Scaler* const scaler = view.scaler(skips.scaler);
    if (scaler != nullptr && scaler->source.known()) finding.culprit.source = scaler->source;
    finding.title = fmt::format("other settings of the scaler would lose less: {}", changes(*tuning));
    finding.message = fmt::format(
        "With today's settings {} of the gradient elements do not reach the weights ({} skipped, {} flushed to zero); "
        "with "
        "these {} ({} skipped, {} flushed). Predicted from this run, and tried on its last third.",
        share(today.lost()), count_of(today.skips), share(today.flushed_share()), share(better.lost()),
        count_of(better.skips), share(better.flushed_share()));
    finding.proof = fmt::format("lost {} → {} · skips {} → {}", share(today.lost()), share(better.lost()),
                                count_of(today.skips), count_of(better.skips));
    finding.evidence = {{"lost_today", today.lost()},
                        {"lost_recommended", better.lost()},
                        {"skips_today", static_cast<double>(today.skips)},
                        {"skips_recommended", static_cast<double>(better.skips)},
                        {"flushed_today", today.flushed_share()},
                        {"flushed_recommended", better.flushed_share()},
                        {"init_scale", tuning->recommended.init_scale},
                        {"growth_factor", tuning->recommended.growth_factor},
                        {"backoff_factor", tuning->recommended.backoff_factor},
                        {"growth_interval", static_cast<double>(tuning->recommended.growth_interval)}};
    const bool restored = scaler != nullptr && scaler->restored;
    finding.fix = python_line(*tuning, restored, device_type(view.run()));
    finding.fix_cpp = cpp_line(*tuning, restored);
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol, Stream::gradients};
constexpr std::array parameters = {
    ParameterSpec{"min_gain", 0.01, 0, 1, false, "share of all gradient elements that must be saved"},
    ParameterSpec{"min_steps", 10, 1, 1000000, true, "skipped steps saved, where it is not flushing that is saved"},
};
constexpr std::array<std::string_view, 8> symptom_of = {"AMP2", "AMP302", "AMP303", "AMP305",
                                                        "AMP4", "AMP5",   "AMP6",   "AMP1"};

}  // namespace

extern const Rule rule_amp304;
const Rule rule_amp304 = {
    .code = "AMP304",
    .name = "scaler-settings",
    .family = Family::scaler_dynamics,
    .severity = Severity::info,
    .summary = "other settings of the scaler would skip less or lose less",
    .needs = needs,
    .parameters = parameters,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
