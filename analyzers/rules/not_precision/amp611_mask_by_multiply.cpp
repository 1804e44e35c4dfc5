#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext&, const Origin& origin) {
  return origin.masked ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  finding.title = "values are masked by multiplying with 0, and some of them are not finite";
  finding.message = fmt::format(
      "{} of {} results of {} are non-finite, and each of them stands where the other factor is exactly 0: 0 times NaN "
      "or "
      "infinity is NaN, so the mask does not remove them. fp32 gives the same.",
      count_of(static_cast<std::int64_t>(counts.total())), count_of(static_cast<std::int64_t>(counts.elements)),
      view.describe(origin.site->id));
  if (origin.born_in != nullptr) {
    finding.message += fmt::format(" They come from {}.", view.describe(origin.born_in->site));
    finding.evidence.emplace_back("born_in", view.describe(origin.born_in->site));
  }
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("{} non-finite values, all where the mask is 0", count_of(event.times_zero));
  finding.evidence.emplace_back("times_zero", static_cast<double>(event.times_zero));
  add_scene(origin, finding);
  finding.fix =
      "select instead: torch.where(mask.bool(), values, 0.0), or values[mask.bool()]; for their gradients make the "
      "values finite before";
  finding.fix_cpp = "select instead: torch::where(mask.to(torch::kBool), values, 0.0)";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp611;
const Rule rule_amp611 = {
    .code = "AMP611",
    .name = "mask-by-multiply",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "a non-finite value is multiplied by a mask that is 0 there, and stays",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
