#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/range.h"

namespace ampscope::analyzers {

namespace {

/// Layers of the forward pass with values above this share of the limit are at its edge.
constexpr double edge = 1.0 / 16;

Claim claim(const RuleContext& context, const Origin& origin) {
  return beyond_range_from_start(context.view(), origin) ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& event = *origin.event;
  const double limit = trace::float_limits(trace::DType::float16).max;
  std::int64_t overflowing = 0;
  std::vector<std::string> near;
  for (const trace::Site& site : view.trace().sites) {
    if (site.kind != trace::SiteKind::op || site.phase != trace::Phase::forward || !site.has_module) continue;
    if (op_kind(site.name) != OpKind::matmul || view.outermost_op(site.id) != &site) continue;
    const trace::SiteTotals& totals = view.totals(site.id);
    if (totals.nonfinite_calls > 0) {
      ++overflowing;
    } else if (totals.absmax >= edge * limit) {
      near.push_back(fmt::format("{} ({})", site.module, number(totals.absmax)));
    }
  }
  finding.title = fmt::format("the activations of {} do not fit fp16, from the first step on",
                              finding.culprit.module.value_or(std::string(base_name(origin.site->name))));
  finding.message = fmt::format(
      "{} overflows in the forward pass of {} of {} steps, the first one included. No loss scale can change that: the "
      "scale multiplies the loss and the gradients, not the activations.",
      view.describe(origin.site->id), count_of(origin.steps.count), count_of(view.steps()));
  if (const auto largest = input_absmax(event))
    finding.message += fmt::format(" Its inputs are up to {}.", number(*largest));
  if (event.replay.done && event.replay.finite) {
    finding.message += fmt::format(" Computed in {} its result is up to {}: {}× the limit.", event.replay.precision,
                                   number(event.replay.absmax), number(event.replay.absmax / limit));
    finding.evidence.emplace_back("times_the_limit", event.replay.absmax / limit);
  }
  if (overflowing > 1)
    finding.message += fmt::format(" {} layers have non-finite results; this is the first.", count_of(overflowing));
  if (!near.empty()) {
    std::string list = near.front();
    for (std::size_t i = 1; i < std::min<std::size_t>(near.size(), 3); ++i)
      list += ", " + near[i];
    finding.message += fmt::format(" Others are close to the limit: {}.", list);
    finding.evidence.emplace_back("near_the_limit", list);
  }
  finding.proof =
      fmt::format("forward overflow in {} of {} steps", count_of(origin.steps.count), count_of(view.steps()));
  if (event.replay.done && event.replay.finite) {
    finding.proof +=
        fmt::format(" · {} gives {}, fp16 ends at 65 504", event.replay.precision, number(event.replay.absmax));
  }
  const auto updates = view.trace().scaler_updates.size();
  if (updates > 0) {
    finding.evidence.emplace_back("scale_first", static_cast<double>(view.trace().scaler_updates.front().scale_before));
    finding.evidence.emplace_back("scale_last", static_cast<double>(view.trace().scaler_updates.back().scale_after));
  }
  add_scene(origin, finding);
  finding.fix =
      "train this model in bfloat16 (weights that were trained in bf16 or fp32 need its range), or keep the layers at "
      "the limit in fp32: with torch.autocast(device_type, enabled=False): layer(x.float())";
  finding.fix_cpp =
      "train in bfloat16, or run the layers at the limit on x.to(torch::kFloat) outside the autocast guard";
}

constexpr std::array needs = {Stream::protocol, Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp409;
const Rule rule_amp409 = {
    .code = "AMP409",
    .name = "checkpoint-out-of-fp16-range",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "a model's activations lie beyond the range of fp16 from the first step, whatever the loss scale",
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
