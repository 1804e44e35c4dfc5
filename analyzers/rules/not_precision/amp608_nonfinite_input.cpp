#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/hidden.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

const trace::WitnessTensor* bad_input(const trace::NonfiniteEvent& event) {
  const auto found = std::find_if(event.inputs.begin(), event.inputs.end(), [](const trace::WitnessTensor& input) {
    return input.stats.nonfinite() != 0 && !receives_result(input);
  });
  return found != event.inputs.end() ? &*found : nullptr;
}

Claim claim(const RuleContext& context, const Origin& origin) {
  if (origin.kind != trace::OriginKind::input || origin.parameter != trace::none ||
      origin.phase == trace::Phase::backward)
    return Claim::none;
  const trace::WitnessTensor* const input = bad_input(*origin.event);
  // Data takes no gradient. What does was computed by something that was not seen.
  if (input == nullptr || input->type.requires_grad) return Claim::none;
  // Made by a kernel of the region that nobody saw, or by the program's own number.
  if (hidden_region(context.view(), *origin.site) != nullptr) return Claim::none;
  if (infinite_constant(context.view(), origin) != nullptr) return Claim::none;
  return context.trace().hidden_regions.empty() ? Claim::proven : Claim::supported;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const trace::WitnessTensor& input = *bad_input(event);
  const NonfiniteCounts counts{input.stats.nan, input.stats.positive_infinity, input.stats.negative_infinity,
                               input.stats.count};
  finding.title =
      counts.nan != 0 ? "the data hold NaN before any operation" : "the data hold infinity before any operation";
  finding.message = fmt::format(
      "A tensor that no operation made ({}) is non-finite when {} first uses it in step {}: {} of {} values.",
      describe_tensor(input), context.view().describe(origin.site->id), count_of(event.step), describe_bad(counts),
      count_of(static_cast<std::int64_t>(counts.elements)));
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("{} of {} values in step {}, micro-batch {}", describe_bad(counts),
                              count_of(static_cast<std::int64_t>(counts.elements)), count_of(event.step),
                              count_of(event.micro_batch));
  add_scene(origin, finding);
  finding.fix =
      "look at the samples of this batch; drop or repair them where the data are loaded (assert "
      "torch.isfinite(batch).all())";
  finding.fix_cpp = "look at the samples of this batch; drop or repair them where the data are loaded";
  if (counts.total() == counts.elements && counts.elements > 0) {
    // Not one good value: rather no data at all.
    finding.fix =
        "fill this tensor where it is made (torch.empty leaves what was in memory), or look at how it is loaded";
    finding.fix_cpp = finding.fix;
  }
}

constexpr std::array needs = {Stream::sentinel};

}  // namespace

extern const Rule rule_amp608;
const Rule rule_amp608 = {
    .code = "AMP608",
    .name = "nonfinite-input",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "the data or a target is non-finite before any operation",
    .precision_fault = false,
    .needs = needs,
    .claim = claim,
    .holds_for_metrics = true,
    .explain = explain,
};

}  // namespace ampscope::analyzers
