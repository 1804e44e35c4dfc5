#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/tuning_report.h"

namespace ampscope::analyzers {

namespace {

/// Whether gradients were seen to overflow at a scale near the largest that is said to fit.
bool seen_to_overflow(const TraceView& view, std::int64_t scaler, double largest_scale) {
  constexpr double near = 16;
  const auto updates = view.updates(scaler);
  return std::any_of(updates.begin(), updates.end(), [&](const trace::ScalerUpdate* update) {
    return update->found_inf != 0 && !no_scale_helps(view, update->step) &&
           static_cast<double>(update->scale_before) <= near * largest_scale;
  });
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const SkipAnalysis& skips : context.skips()) {
    const std::optional<Tuning>& tuning = context.tuning(skips.scaler);
    // What is non-finite whatever the scale has a cause of its own, which the rules of overflow name.
    if (!tuning || !tuning->no_scale_fits || tuning->no_scale_fits->forward) continue;
    const NoScaleFits& none = *tuning->no_scale_fits;
    if (none.lost < context.parameter("min_share")) continue;
    if (!seen_to_overflow(view, skips.scaler, none.largest_scale)) continue;
    Finding finding = context.finding();
    const auto updates = view.updates(skips.scaler);
    finding.steps = {updates.front()->step, updates.back()->step, static_cast<std::int64_t>(updates.size())};
    std::string layers;
    for (const PredictedParameter& lost : none.parameters) {
      const trace::Parameter* const parameter = view.parameter(lost.parameter);
      if (parameter == nullptr) continue;
      if (layers.empty()) {
        finding.culprit.parameter = parameter->name;
        if (!parameter->module.empty()) finding.culprit.module = parameter->module;
      }
      layers += fmt::format("{}{} ({})", layers.empty() ? "" : ", ", parameter->name, share(lost.flushed));
    }
    finding.culprit.phase = trace::Phase::backward;
    const std::vector<std::string> places = overflow_places(view, skips.scaler);
    finding.title = "no loss scale fits: what does not overflow is flushed to zero";
    const std::string why =
        none.all_zero > 0 ? fmt::format("of {} not one gradient element is kept", plural(none.all_zero, "parameter"))
                          : fmt::format("gradients span {:.0f} powers of two, fp16 holds 40", none.range);
    finding.message = fmt::format(
        "At {}, the largest scale that overflows nothing in most steps, {} of the gradient elements are still flushed "
        "to zero: {}.",
        scale(none.largest_scale), share(none.lost), why);
    if (!layers.empty()) finding.message += fmt::format(" Flushed most: {}.", layers);
    if (!places.empty()) finding.message += fmt::format(" Overflows first in {}.", places.front());
    const std::string extent = none.all_zero > 0 ? plural(none.all_zero, "parameter") + " zero everywhere"
                                                 : fmt::format("range 2^{:.0f}", none.range);
    finding.proof = fmt::format("{} · largest scale that fits {} · flushed there {}", extent, scale(none.largest_scale),
                                share(none.lost));
    finding.evidence = {{"largest_scale", none.largest_scale},
                        {"flushed_share", none.lost},
                        {"range_log2", none.range},
                        {"parameters_all_zero", static_cast<double>(none.all_zero)},
                        {"share_of_steps", none.share_of_steps}};
    if (!layers.empty()) finding.evidence.emplace_back("flushed_in", layers);
    if (!places.empty()) finding.evidence.emplace_back("overflows_in", places.front());
    finding.fix =
        "run the layers that overflow in fp32 (torch.autocast(device_type, enabled=False) around them), bring the "
        "terms of "
        "the loss to one size, or train in bfloat16, whose range is that of fp32";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol, Stream::gradients};
constexpr std::array parameters = {
    ParameterSpec{"min_share", 0.05, 0, 1, false,
                  "share of gradient elements flushed to zero at the largest scale that overflows nothing"},
};
constexpr std::array<std::string_view, 2> symptom_of = {"AMP4", "AMP2"};

}  // namespace

extern const Rule rule_amp305;
const Rule rule_amp305 = {
    .code = "AMP305",
    .name = "no-scale-fits",
    .family = Family::scaler_dynamics,
    .severity = Severity::error,
    .summary = "the range of the gradients exceeds fp16 at every loss scale",
    .needs = needs,
    .parameters = parameters,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
