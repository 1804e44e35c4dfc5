#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

bool is_variance(std::string_view base) {
  return base == "var" || base == "std" || base == "var_mean" || base == "std_mean";
}

Claim claim(const RuleContext&, const Origin& origin) {
  if (!made_here(origin) || !is_variance(base_name(origin.site->name))) return Claim::none;
  const NonfiniteCounts counts = output_counts(*origin.event);
  const auto terms = reduction_terms(*origin.site, *origin.event);
  // n - 1 is zero: every result is 0/0. Overflow would be infinite, and more terms would be finite.
  return counts.nan != 0 && counts.infinite() == 0 && terms && *terms == 1 ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const NonfiniteCounts counts = output_counts(*origin.event);
  const std::string_view base = base_name(origin.site->name);
  finding.title = fmt::format("{} of a single element is 0/0", base);
  finding.message =
      fmt::format("{} divides by n - 1, and n is 1 here: {} of {} results are NaN. fp32 gives the same.",
                  context.view().describe(origin.site->id), count_of(static_cast<std::int64_t>(counts.nan)),
                  count_of(static_cast<std::int64_t>(counts.elements)));
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("n = 1, n - 1 = 0 · {}", describe_bad(counts));
  finding.evidence.emplace_back("terms", 1.0);
  add_scene(origin, finding);
  finding.fix =
      fmt::format("x.{}(…, unbiased=False), or leave batches of one out (DataLoader(…, drop_last=True))", base);
  finding.fix_cpp = "pass unbiased = false, or leave batches of one out";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp605;
const Rule rule_amp605 = {
    .code = "AMP605",
    .name = "std-of-one",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "an unbiased variance or standard deviation is taken of a single element",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
