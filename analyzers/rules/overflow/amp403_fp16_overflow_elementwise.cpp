#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/range.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

bool in_place(const trace::NonfiniteEvent& event) {
  return std::any_of(event.inputs.begin(), event.inputs.end(),
                     [](const trace::WitnessTensor& input) { return input.finite_before; });
}

Claim claim(const RuleContext& context, const Origin& origin) {
  if (origin.op != OpKind::elementwise || !made_here(origin)) return Claim::none;
  const trace::NonfiniteEvent& event = *origin.event;
  if (compute_dtype(event, *origin.site) != trace::DType::float16 && output_dtype(event) != trace::DType::float16)
    return Claim::none;
  if (output_counts(event).infinite() == 0 || divides_by_zero(origin) || !inputs_finite(event)) return Claim::none;
  const Claim judged =
      behind_wider_cause(context.view(), origin, judge_overflow(event, trace::DType::float16, std::nullopt));
  // A constant that does not fit, or a mask at the very end of the type, says more than the operator that met it.
  if (judged == Claim::proven && (mask_constant(origin) || saturating_mask(origin) != nullptr)) return Claim::supported;
  return judged == Claim::plausible && in_place(event) ? Claim::supported : judged;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const std::string_view base = base_name(origin.site->name);
  const bool exponential = base == "exp" || base == "expm1" || base == "exp2" || base == "cosh" || base == "sinh";
  finding.title = fmt::format("{} overflows fp16", base);
  finding.message = fmt::format("{} makes the first non-finite values ({} of {}) from finite inputs.",
                                context.view().describe(origin.site->id), describe_bad(counts),
                                count_of(static_cast<std::int64_t>(counts.elements)));
  if (const auto largest = input_absmax(event)) {
    finding.message += fmt::format(" Its inputs are up to {}; fp16 ends at 65 504{}.", number(*largest),
                                   base == "exp" ? ", which exp passes at 11.09" : "");
    finding.proof = fmt::format("inputs up to {}", number(*largest));
  }
  if (event.replay.done) {
    const double beyond = event.replay.absmax / trace::float_limits(trace::DType::float16).max;
    finding.message += fmt::format(" Computed in {} the result is finite, with {} as its largest: {}× the limit.",
                                   event.replay.precision, number(event.replay.absmax), number(beyond));
    finding.evidence.emplace_back("times_the_limit", beyond);
    finding.proof += fmt::format("{}{} gives {}, fp16 ends at 65 504", finding.proof.empty() ? "" : " · ",
                                 event.replay.precision, number(event.replay.absmax));
  }
  if (const trace::Site* const limit = discarded_by(context.view(), *origin.site);
      limit != nullptr && !origin.outcome.loss_nonfinite) {
    finding.message += fmt::format(" {} limits it afterwards, too late for backward: 0 times infinity is NaN there.",
                                   context.view().describe(limit->id));
  }
  finding.message += describe_outcome(origin);
  if (finding.proof.empty()) finding.proof = describe_bad(counts);
  add_scene(origin, finding);
  finding.fix =
      exponential
          ? fmt::format("limit the argument, not the result: torch.{}(x.clamp(max=10)); or x.float() before", base)
          : fmt::format("compute it in fp32: torch.{}(x.float(), …), or divide before", base);
  finding.fix_cpp = exponential ? "limit the argument: x.clamp_max(10), or x.to(torch::kFloat) before"
                                : "compute it in fp32: x.to(torch::kFloat) before";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp403;
const Rule rule_amp403 = {
    .code = "AMP403",
    .name = "fp16-overflow-elementwise",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "exp, pow or another elementwise operator makes the first non-finite value from finite fp16 inputs",
    .precision_fault = true,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .holds_for_metrics = true,
    .explain = explain,
};

}  // namespace ampscope::analyzers
