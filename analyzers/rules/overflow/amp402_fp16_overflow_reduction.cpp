#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/range.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// No value that arises on the way to the exact result can be larger.
std::optional<double> largest_possible(const Origin& origin) {
  const auto terms = reduction_terms(*origin.site, *origin.event);
  const auto largest = input_absmax(*origin.event);
  if (!terms || !largest) return std::nullopt;
  const auto n = static_cast<double>(*terms);
  const std::string_view base = base_name(origin.site->name);
  if (base.find("norm") != std::string_view::npos || base.starts_with("dist")) {
    // Implementations that square in the input's own type overflow at the sum of squares, not at its root.
    return n * std::max(1.0, *largest) * *largest;
  }
  if (base.starts_with("var") || base.starts_with("std") || base.find("mse") != std::string_view::npos ||
      base.find("distance") != std::string_view::npos || base.find("similarity") != std::string_view::npos) {
    return n * 4 * *largest * *largest;
  }
  if (base.find("prod") != std::string_view::npos) return std::nullopt;
  return n * *largest;
}

Claim claim(const RuleContext& context, const Origin& origin) {
  const bool copies_sum = accumulates_wider(context.view(), origin) != nullptr;
  if (copies_sum && made_here(origin) && output_dtype(*origin.event) == trace::DType::float16) return Claim::proven;
  const bool reduces = origin.op == OpKind::reduction || origin.op == OpKind::loss || origin.op == OpKind::normalise;
  if (!reduces || origin.from_intended_infinity) return Claim::none;
  const trace::DType computed = compute_dtype(*origin.event, *origin.site);
  const trace::DType out = output_dtype(*origin.event);
  if (computed != trace::DType::float16 && out != trace::DType::float16) return Claim::none;
  if (origin.site->id != origin.event->site) return Claim::plausible;
  if (origin.kind != trace::OriginKind::producer && origin.kind != trace::OriginKind::unknown) return Claim::none;
  return behind_wider_cause(context.view(), origin,
                            judge_overflow(*origin.event, trace::DType::float16, largest_possible(origin)));
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const trace::Site* const sum = accumulates_wider(context.view(), origin);
  const trace::Site& op = sum != nullptr ? *sum : *origin.site;
  const std::string_view base = base_name(op.name);
  // The terms of a copy are not those of the sum. 0: not known.
  const std::int64_t terms = sum != nullptr ? 0 : reduction_terms(*origin.site, event).value_or(0);
  const auto largest = input_absmax(event);
  if (sum != nullptr) finding.culprit.op = sum->name;
  finding.title = terms > 0 ? fmt::format("a {} over {} values overflows fp16", base, count_of(terms))
                            : fmt::format("a {} overflows fp16", base);
  finding.message =
      fmt::format("{} makes the first non-finite values ({} of {}) from finite inputs.", context.view().describe(op.id),
                  describe_bad(counts), count_of(static_cast<std::int64_t>(counts.elements)));
  if (terms > 0) {
    finding.evidence.emplace_back("terms", static_cast<double>(terms));
    finding.proof = fmt::format("{}", plural(terms, "term"));
  }
  if (largest && sum != nullptr) {
    finding.message += fmt::format(" What it adds up comes to {}; fp16 ends at 65 504.", number(*largest));
    finding.proof = fmt::format("sums up to {} · fp16 ends at 65 504", number(*largest));
  } else if (largest) {
    finding.message += fmt::format(" It adds up {} of up to {}; fp16 ends at 65 504.",
                                   terms > 0 ? plural(terms, "value") : "values", number(*largest));
    finding.proof += fmt::format("{}up to {}", finding.proof.empty() ? "" : " of ", number(*largest));
  }
  if (event.replay.done) {
    const double beyond = event.replay.absmax / trace::float_limits(trace::DType::float16).max;
    finding.message += fmt::format(" Computed in {} the result is {}: {}× the limit.", event.replay.precision,
                                   number(event.replay.absmax), number(beyond));
    finding.evidence.emplace_back("times_the_limit", beyond);
    finding.proof += fmt::format("{}{} gives {}, fp16 ends at 65 504", finding.proof.empty() ? "" : " · ",
                                 event.replay.precision, number(event.replay.absmax));
  }
  finding.message += describe_outcome(origin);
  if (finding.proof.empty()) finding.proof = describe_bad(counts);
  add_scene(origin, finding);
  finding.fix_cpp = "reduce in fp32: x.to(torch::kFloat) before it";
  if (sum != nullptr) {
    finding.fix =
        fmt::format("add up into fp32: torch.zeros(…, dtype=torch.float32).{}(…, x.float()); or a mean", base);
    return;
  }
  finding.fix = fmt::format("reduce in fp32: x.{}(…, dtype=torch.float32) or x.float().{}(…); or use a mean over parts",
                            base, base);
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp402;
const Rule rule_amp402 = {
    .code = "AMP402",
    .name = "fp16-overflow-reduction",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "a sum, norm, cumulative sum or the like makes the first non-finite value from finite inputs in fp16",
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .holds_for_metrics = true,
    .explain = explain,
};

}  // namespace ampscope::analyzers
