#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/loss_finding.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext& context, const Origin& origin) {
  return loss_before(context, origin, Vanished::guard).claim;
}

/// The smallest guard that does its work: whole powers of ten above the smallest normal value.
double working_guard(trace::DType dtype) {
  return dtype == trace::DType::float16 ? 1e-4 : 1e-30;
}

void describe(const RuleContext& context, const Loss& loss, const trace::Site& met, Finding& finding) {
  const TraceView& view = context.view();
  const std::string type = trace::short_dtype_name(loss.dtype);
  const double half_of_smallest = std::ldexp(1.0, trace::float_limits(loss.dtype).smallest_subnormal - 1);
  finding.precision_fault = !loss.in_fp32;
  finding.same_in_fp32 = loss.in_fp32;
  finding.title = fmt::format("the guard {:g} is zero in {}", loss.constant, type);
  finding.message =
      fmt::format("{} uses {:g} in {}, where everything up to {} is rounded to zero, so nothing keeps zeros from {}.",
                  view.describe(loss.site->id), loss.constant, type, number(half_of_smallest), zero_meets(view, met));
  finding.proof = fmt::format("{:g} becomes 0 in {} (below {})", loss.constant, type, number(half_of_smallest));
  finding.evidence = {{"constant", loss.constant},
                      {"in_dtype", 0.0},
                      {"rounds_to_zero_below", half_of_smallest},
                      {"met_by", view.describe(met.id)}};
  finding.fix =
      fmt::format("use a guard that the type can hold, {:g} or more in {}, or compute this in fp32: x.float()",
                  working_guard(loss.dtype), type);
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  explain_loss(context, origin, loss_before(context, origin, Vanished::guard), describe, finding);
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  report_unreached(context, Vanished::guard, describe, findings);
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 2> symptom_of = {"AMP208", "AMP504"};

}  // namespace

extern const Rule rule_amp502;
const Rule rule_amp502 = {
    .code = "AMP502",
    .name = "eps-rounds-to-zero",
    .family = Family::lost_precision,
    .severity = Severity::error,
    .summary = "a small constant that guards a division, log or root is zero in the type it meets",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
