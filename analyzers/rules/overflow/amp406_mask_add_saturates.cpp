#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext&, const Origin& origin) {
  return saturating_mask(origin) != nullptr ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const trace::WitnessTensor& mask = *saturating_mask(origin);
  const trace::DType dtype = output_dtype(event);
  finding.title = "a finite mask plus finite scores is -inf";
  finding.message = fmt::format(
      "{} adds a mask of {} to scores; {} sums pass the end of {} at {} and become -inf. A row of nothing else has no "
      "softmax.",
      context.view().describe(origin.site->id), number(mask.stats.min),
      count_of(static_cast<std::int64_t>(counts.negative)), trace::short_dtype_name(dtype),
      number(-trace::float_limits(dtype).max));
  if (event.replay.done) finding.message += fmt::format(" In {} the sum is finite.", event.replay.precision);
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("mask {} + scores · {} sums are -inf", number(mask.stats.min),
                              count_of(static_cast<std::int64_t>(counts.negative)));
  finding.evidence.emplace_back("mask", mask.stats.min);
  add_scene(origin, finding);
  finding.fix =
      "fill instead of adding: scores.masked_fill(mask, torch.finfo(scores.dtype).min); combine several masks with | "
      "before";
  finding.fix_cpp = "fill instead of adding: scores.masked_fill(mask, -65504.0); combine several masks with | before";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp406;
const Rule rule_amp406 = {
    .code = "AMP406",
    .name = "mask-add-saturates",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "a mask at the lowest finite value is added to scores, the sum is -inf, and a row is emptied",
    .precision_fault = true,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
