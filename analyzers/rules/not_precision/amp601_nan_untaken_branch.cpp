#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// Whether what the node hands on is NaN and never infinite: the gradient that met the infinite derivative was 0
/// everywhere it was infinite.
bool gradient_was_zero(const RuleContext& context, const Origin& origin) {
  const TraceView& view = context.view();
  const NonfiniteCounts own = output_counts(*origin.event);
  if (own.nan != 0 && own.infinite() == 0) return true;
  const trace::Site* const node = view.backward_node(origin.site->id);
  if (node == nullptr) return false;
  const trace::NonfiniteEvent* last = nullptr;
  for (const trace::NonfiniteEvent* event : view.nonfinite_events(origin.event->step)) {
    const trace::Site* const of = view.backward_node(event->site);
    if (of != nullptr && of->id == node->id) last = event;
  }
  if (last == nullptr) return false;
  const NonfiniteCounts counts = output_counts(*last);
  return counts.nan != 0 && counts.infinite() == 0;
}

const trace::Site* selection_of(const RuleContext& context, const Origin& origin) {
  const TraceView& view = context.view();
  const trace::Site* const forward =
      origin.phase == trace::Phase::backward ? view.forward_of(origin.site->id) : origin.site;
  return forward != nullptr ? discarded_by(view, *forward) : nullptr;
}

Claim claim(const RuleContext& context, const Origin& origin) {
  if (origin.outcome.loss_nonfinite || !made_here(origin)) return Claim::none;
  // Finite in higher precision: then the branch is only where the overflow does its harm.
  if (finite_when_wider(*origin.event) && trace::is_half(compute_dtype(*origin.event, *origin.site)))
    return Claim::none;
  if (selection_of(context, origin) == nullptr) return Claim::none;
  if (origin.phase != trace::Phase::backward) return Claim::proven;
  return gradient_was_zero(context, origin) ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const NonfiniteCounts counts = output_counts(*origin.event);
  const trace::Site* const selection = selection_of(context, origin);
  const trace::Site* const forward =
      origin.phase == trace::Phase::backward ? view.forward_of(origin.site->id) : origin.site;
  const trace::Site* const called = view.outermost_op(forward->id);
  const std::string_view base = base_name(called->name);
  const std::string_view by = base_name(selection->name);
  finding.culprit.op = called->name;
  finding.title =
      fmt::format("{} is computed where {} throws its result away, and its derivative there is not finite", base, by);
  finding.message = fmt::format(
      "The loss is finite: {} takes other values where {} has none. Backward still differentiates {} there and "
      "multiplies "
      "the result by 0, which makes {} of {} NaN or infinite. fp32 gives the same.",
      view.describe(selection->id), view.describe(called->id), base,
      count_of(static_cast<std::int64_t>(counts.total())), count_of(static_cast<std::int64_t>(counts.elements)));
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("{} of {} · hidden by {}", describe_bad(counts),
                              count_of(static_cast<std::int64_t>(counts.elements)), view.describe(selection->id));
  finding.evidence.emplace_back("hidden_by", view.describe(selection->id));
  add_scene(origin, finding);
  finding.fix = fmt::format(
      "make the argument safe before: safe = torch.where(ok, x, 1.0); torch.where(ok, torch.{}(safe), 0.0)", base);
  finding.fix_cpp = fmt::format(
      "make the argument safe before: auto safe = torch::where(ok, x, 1.0); torch::where(ok, torch::{}(safe), 0.0)",
      base);
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp601;
const Rule rule_amp601 = {
    .code = "AMP601",
    .name = "nan-untaken-branch",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "torch.where hides a non-finite value in forward, and backward multiplies its derivative by 0",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
