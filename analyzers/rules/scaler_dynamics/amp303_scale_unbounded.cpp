#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "trace/series.h"

namespace ampscope::analyzers {

namespace {

/// Largest magnitude, scaled as it was, of any gradient from `first_step` on; empty when none was looked at.
std::optional<double> largest_scaled(const TraceView& view, std::int64_t scaler, std::int64_t first_step) {
  std::optional<double> largest;
  const auto add = [&](double unscaled, std::int64_t step) {
    const double used = view.scale_at(step, scaler).value_or(1);
    largest = std::max(largest.value_or(0), unscaled * used);
  };
  for (const trace::SeriesPoint& point : view.trace().series) {
    if (point.name != trace::backward_absmax_series || point.object != scaler || point.last_step < first_step) continue;
    if (point.nonfinite < point.count) add(point.max, point.last_step);
  }
  for (const trace::GradientWindow& window : view.trace().gradients) {
    if (window.last_step < first_step) continue;
    largest = std::max(largest.value_or(0), window.stats.absmax * window.scale_max);
  }
  return largest;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const SkipAnalysis& skips : context.skips()) {
    const auto updates = view.updates(skips.scaler);
    if (updates.empty() || !(skips.lowest_scale > 0)) continue;
    const double grown = std::log2(skips.last_scale / skips.lowest_scale);
    if (!(grown >= context.parameter("min_growth"))) continue;
    if (!(std::log2(skips.last_scale) >= context.parameter("min_scale"))) continue;
    // The end of the run decides: a scale that grew too far is brought back by an overflow, and is not without bound.
    const std::size_t tail = updates.size() - std::max<std::size_t>(updates.size() / 4, 1);
    const bool skipped = std::any_of(updates.begin() + static_cast<std::ptrdiff_t>(tail), updates.end(),
                                     [](const trace::ScalerUpdate* update) { return update->found_inf != 0; });
    if (skipped) continue;
    const auto largest = largest_scaled(view, skips.scaler, updates[tail]->step);
    if (!largest || *largest >= context.parameter("max_scaled_gradient")) continue;

    Finding finding = context.finding();
    std::int64_t raises = 0;
    for (const trace::ScalerUpdate* update : updates) {
      if (!(update->scale_after > update->scale_before)) continue;
      if (raises == 0) finding.steps.first = update->step;
      finding.steps.last = update->step;
      ++raises;
    }
    finding.steps.count = raises;
    finding.culprit.op = "GradScaler.update";
    finding.culprit.phase = trace::Phase::scaler;
    const trace::Scaler* const scaler = view.scaler(skips.scaler);
    if (scaler != nullptr && scaler->source.known()) finding.culprit.source = scaler->source;
    const bool all_zero = *largest == 0;
    finding.title = all_zero ? "the loss scale climbs without bound because all gradients are zero"
                             : "the loss scale climbs without bound while gradients stay tiny";
    finding.message = fmt::format(
        "It was raised {} times, from {} to {}, and the largest gradient multiplied by it is {} at the end, where fp16 "
        "holds 65 504. From 2^127 on the scaled loss itself overflows.",
        count_of(raises), scale(skips.lowest_scale), scale(skips.last_scale), number(*largest));
    finding.proof = fmt::format("scale {} → {} · largest scaled gradient {}", scale(skips.lowest_scale),
                                scale(skips.last_scale), number(*largest));
    finding.evidence = {{"first_scale", skips.lowest_scale},
                        {"last_scale", skips.last_scale},
                        {"raises", static_cast<double>(raises)},
                        {"largest_scaled_gradient", *largest}};
    finding.fix =
        "find out why gradients vanish: a loss that is zero, a part of the model cut off (detach, a dead activation), "
        "a "
        "factor too many in the loss; the scaler only follows";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol, Stream::gradients};
constexpr std::array parameters = {
    ParameterSpec{"min_growth", 8, 1, 200, false, "powers of two that the scale must have climbed"},
    ParameterSpec{"min_scale", 32, 0, 127, false, "power of two that it must have reached"},
    ParameterSpec{"max_scaled_gradient", 1, 0, 65504, false,
                  "largest scaled gradient of the last quarter that still counts as tiny"},
};
constexpr std::array<std::string_view, 4> symptom_of = {"AMP217", "AMP5", "AMP6", "AMP208"};

}  // namespace

extern const Rule rule_amp303;
const Rule rule_amp303 = {
    .code = "AMP303",
    .name = "scale-unbounded",
    .family = Family::scaler_dynamics,
    .severity = Severity::warning,
    .summary = "the loss scale climbs without bound while gradients stay tiny",
    .precision_fault = false,
    .needs = needs,
    .parameters = parameters,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
