#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext& context, const Origin& origin) {
  if (!made_here(origin)) return Claim::none;
  if (origin.phase == trace::Phase::backward && !is_hook_code(context.view(), origin)) return Claim::none;
  if (finite_when_wider(*origin.event) || !divides_by_zero(origin)) return Claim::none;
  const Divisor divisor = divisor_of(origin);
  if (divisor.is_number) return Claim::proven;
  // Low precision can have made this zero of a small number; whoever shows that has the better explanation.
  if (may_be_rounded(context.view(), *divisor.tensor)) return Claim::supported;
  return Claim::proven;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const Divisor divisor = divisor_of(origin);
  const auto zeros = static_cast<std::int64_t>(divisor.zeros);
  const auto count = static_cast<std::int64_t>(divisor.count);
  const bool all = divisor.zeros == divisor.count;
  finding.title = counts.infinite() == 0 ? "0 is divided by 0" : "something is divided by 0";
  finding.message = fmt::format("{} makes {} of {} results: ", view.describe(origin.site->id), describe_bad(counts),
                                count_of(static_cast<std::int64_t>(counts.elements)));
  if (divisor.is_number) {
    finding.message += "the number it divides by is 0.";
    finding.proof = fmt::format("divided by the number 0 · {}", describe_bad(counts));
  } else {
    finding.message += all && count == 1 ? "what it divides by is exactly 0."
                                         : fmt::format("what it divides by is exactly 0 in {} of {} places.",
                                                       count_of(zeros), count_of(count));
    finding.proof = fmt::format("{} of {} divisors are 0 · {}", count_of(zeros), count_of(count), describe_bad(counts));
    if (const trace::Site* const made = view.site(divisor.tensor->type.producer); made != nullptr) {
      finding.message += fmt::format(" It was made by {}.", view.describe(made->id));
      finding.evidence.emplace_back("divisor_from", view.describe(made->id));
    }
  }
  finding.evidence.emplace_back("zeros", static_cast<double>(divisor.zeros));
  finding.evidence.emplace_back("divisors", static_cast<double>(divisor.count));
  finding.message += " It is the same in fp32.";
  finding.message += describe_outcome(origin);
  add_scene(origin, finding);
  finding.fix = "guard the divisor: n / d.clamp(min=1) for a count, or torch.where(d != 0, n / d.clamp(min=eps), 0)";
  finding.fix_cpp = "guard the divisor: n / d.clamp_min(1) for a count, or n / d.clamp_min(eps)";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp606;
const Rule rule_amp606 = {
    .code = "AMP606",
    .name = "division-by-zero",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "something is divided by an exact zero that no rounding made",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
