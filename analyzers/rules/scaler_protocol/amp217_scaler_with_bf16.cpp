#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::DType;

bool computes_in(const TraceView& view, DType dtype) {
  const auto in = [&](const PrecisionUse& use) { return use.dtype == dtype; };
  return std::any_of(view.forward_precision().begin(), view.forward_precision().end(), in) ||
         std::any_of(view.backward_precision().begin(), view.backward_precision().end(), in) || view.weights_of(dtype);
}

/// Time spent with the scaler's own operators, a step.
std::int64_t scaler_time(const TraceView& view) {
  std::int64_t total = 0;
  for (const trace::Site& site : view.trace().sites) {
    const trace::Site* const parent = view.parent(site);
    if (site.phase != trace::Phase::scaler || (parent != nullptr && parent->phase == trace::Phase::scaler)) continue;
    total += view.totals(site.id).time_ns;
  }
  return view.steps() > 0 ? total / view.steps() : 0;
}

double mean_step_time(const TraceView& view) {
  double sum = 0;
  double count = 0;
  for (const trace::SeriesPoint* point : view.series("step_time_ns")) {
    sum += point->mean * static_cast<double>(point->count);
    count += static_cast<double>(point->count);
  }
  return count > 0 ? sum / count : 0;
}

/// Share of gradient elements that bf16 itself could not hold, scaled or not.
double underflow_share(const TraceView& view) {
  double elements = 0;
  double below = 0;
  for (const trace::GradientWindow& window : view.trace().gradients) {
    elements += window.weight * static_cast<double>(window.stats.count);
    below += window.weight *
             static_cast<double>(window.stats.exponents.below(trace::float_limits(DType::bfloat16).smallest_normal));
  }
  return elements > 0 ? below / elements : 0;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (!view.scaled() || !computes_in(view, DType::bfloat16) || computes_in(view, DType::float16)) return;
  const auto enabled = std::find_if(view.trace().scalers.begin(), view.trace().scalers.end(),
                                    [](const trace::Scaler& scaler) { return scaler.enabled; });
  if (enabled == view.trace().scalers.end() && !view.trace().scalers.empty()) return;
  StepSpan steps;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    if (event.kind == trace::EventKind::backward && (event.flags & trace::event_flag::scaled) != 0) extend(steps, span);
  });
  const std::int64_t cost = scaler_time(view);
  const double step_time = mean_step_time(view);
  const double underflow = underflow_share(view);
  const auto skips = static_cast<std::int64_t>(view.skipped_steps().size());

  Finding finding = context.finding();
  finding.title = "a gradient scaler is enabled in a bf16 run, which needs none";
  finding.steps = steps;
  finding.culprit.op = "GradScaler";
  finding.culprit.phase = trace::Phase::scaler;
  if (enabled != view.trace().scalers.end() && enabled->source.known()) finding.culprit.source = enabled->source;
  finding.message = fmt::format(
      "bf16 has the range of fp32: {} of the gradients are too small for it, so there is nothing for a loss scale to "
      "save.",
      share(underflow));
  finding.evidence = {{"underflow_share", underflow}, {"skipped_steps", static_cast<double>(skips)}};
  finding.proof = fmt::format("{} of gradients below bf16's range", share(underflow));
  if (cost > 0) {
    finding.evidence.emplace_back("cost_ns_per_step", static_cast<double>(cost));
    finding.proof += fmt::format(" · scaling costs {} µs a step", number(static_cast<double>(cost) / 1e3));
    if (step_time > 0) {
      finding.evidence.emplace_back("cost_share", static_cast<double>(cost) / step_time);
      finding.proof += fmt::format(" ({})", share(static_cast<double>(cost) / step_time));
    }
  }
  if (skips > 0) {
    finding.message += fmt::format(" It skipped {} for nothing.", plural(skips, "step"));
    finding.proof += fmt::format(" · {} skipped", plural(skips, "step"));
  }
  finding.fix = "scaler = torch.amp.GradScaler(device, enabled=False)   or leave it out";
  finding.fix_cpp = "make the GradScaler with enabled = false";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol, Stream::ops};

}  // namespace

extern const Rule rule_amp217;
const Rule rule_amp217 = {
    .code = "AMP217",
    .name = "scaler-with-bf16",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "an enabled scaler in a bf16 run",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
