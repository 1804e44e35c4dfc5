#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// The call of the same step in which a non-finite input was made, over those that passed it on; null when that is not
/// known, or when it was not made by overflow.
const trace::NonfiniteEvent* born(const TraceView& view, const trace::NonfiniteEvent& absorber, std::int64_t producer) {
  const auto events = view.nonfinite_events(absorber.step);
  // Sites whose latest call may have handed on the value. What only moves or widens it is not looked at and has no
  // event of its own: its producers stand for it.
  std::set<std::int64_t> sites;
  const auto follow = [&](std::int64_t site) {
    std::vector<std::int64_t> open = {site};
    while (!open.empty()) {
      const std::int64_t at = open.back();
      open.pop_back();
      if (view.site(at) == nullptr || !sites.insert(at).second || view.totals(at).checked_calls != 0) continue;
      for (const std::int64_t before : view.producers(at))
        open.push_back(before);
    }
  };
  follow(producer);
  for (std::size_t i = events.size(); i-- > 0;) {
    const trace::NonfiniteEvent& event = *events[i];
    if (event.order > absorber.order || !sites.contains(event.site)) continue;
    if (event.kind == trace::OriginKind::producer) return &event;
    const auto bad = std::find_if(event.inputs.begin(), event.inputs.end(),
                                  [](const trace::WitnessTensor& input) { return input.stats.nonfinite() != 0; });
    if (bad == event.inputs.end()) return nullptr;
    sites.clear();
    follow(bad->type.producer);
  }
  return nullptr;
}

bool overflowed(const TraceView& view, const trace::NonfiniteEvent& event) {
  const trace::Site* const site = view.site(event.site);
  if (site == nullptr || !inputs_finite(event) || output_counts(event).nan != 0) return false;
  const trace::DType dtype = output_dtype(event);
  if (!trace::is_half(dtype)) return false;
  if (event.replay.done) return event.replay.finite && event.replay.absmax > trace::float_limits(dtype).max;
  return op_kind(site->name) == OpKind::reduction || op_kind(site->name) == OpKind::matmul;
}

/// What the absorber divides by.
const trace::WitnessTensor* infinite_divisor(const trace::NonfiniteEvent& event, const trace::Site& site) {
  Origin origin;
  origin.event = &event;
  origin.site = &site;
  const Divisor divisor = divisor_of(origin);
  return divisor.tensor != nullptr && divisor.tensor->stats.infinite() != 0 ? divisor.tensor : nullptr;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const trace::NonfiniteEvent* absorber : view.absorbers()) {
    const trace::Site* const divides = view.site(absorber->site);
    // A step that went wrong has an origin of its own; what became a zero on the way is not the story then.
    if (divides == nullptr || view.outcome(absorber->step).loss_nonfinite) continue;
    const trace::WitnessTensor* const divisor = infinite_divisor(*absorber, *divides);
    const NonfiniteCounts out = output_counts(*absorber);
    const std::uint64_t zeros = absorber->outputs.empty() ? 0 : absorber->outputs.front().stats.zero;
    if (divisor == nullptr || out.total() != 0 || zeros < divisor->stats.infinite()) continue;
    const trace::NonfiniteEvent* const event = born(view, *absorber, divisor->type.producer);
    if (event == nullptr || !overflowed(view, *event)) continue;
    const trace::Site& site = *view.site(event->site);
    const trace::SiteTotals& totals = view.totals(event->site);
    Finding finding = context.finding();
    finding.culprit = context.culprit(event->site);
    finding.culprit.phase = site.phase;
    finding.steps = {event->step, std::max(totals.last_nonfinite_step, event->step),
                     std::max<std::int64_t>(totals.nonfinite_steps, 1)};
    finding.call = {view.run().pid, event->order};
    const std::string_view base = base_name(site.name);
    finding.title = fmt::format("{} overflows {}, and dividing by the infinity gives exact zeros", base,
                                trace::short_dtype_name(output_dtype(*event)));
    finding.message = fmt::format(
        "{} makes {} of finite values; {} divides by it and returns {} exact zeros of {}. Nothing becomes NaN, so "
        "nothing is "
        "noticed, and no gradient flows back.",
        view.describe(site.id), describe_bad(output_counts(*event)), view.describe(divides->id),
        count_of(static_cast<std::int64_t>(zeros)), count_of(static_cast<std::int64_t>(out.elements)));
    if (event->replay.done) {
      finding.message +=
          fmt::format(" In {} the largest value is {}.", event->replay.precision, number(event->replay.absmax));
      finding.evidence.emplace_back("replay_largest", event->replay.absmax);
    }
    finding.proof = fmt::format(
        "{}{} zeros in {}",
        event->replay.done ? fmt::format("{} gives {} · ", event->replay.precision, number(event->replay.absmax)) : "",
        count_of(static_cast<std::int64_t>(zeros)), view.describe(divides->id));
    finding.evidence.emplace_back("zeros", static_cast<double>(zeros));
    finding.evidence.emplace_back("divides", view.describe(divides->id));
    finding.evidence.emplace_back("inputs", describe_tensors(event->inputs));
    finding.fix = "compute the divisor in fp32: x.float() before the sum or product, or sum(…, dtype=torch.float32)";
    finding.fix_cpp = "compute the divisor in fp32: x.to(torch::kFloat) before the sum or product";
    const bool known = std::any_of(findings.begin(), findings.end(),
                                   [&](const Finding& other) { return other.culprit.site == finding.culprit.site; });
    if (!known) findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 3> symptom_of = {"AMP401", "AMP402", "AMP403"};

}  // namespace

extern const Rule rule_amp407;
const Rule rule_amp407 = {
    .code = "AMP407",
    .name = "silent-zero-after-overflow",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "an infinity made by overflow is divided by, and becomes an exact 0 without any NaN",
    .precision_fault = true,
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
