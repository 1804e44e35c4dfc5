#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/loss_finding.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext& context, const Origin& origin) {
  return loss_before(context, origin, Vanished::one).claim;
}

void describe(const RuleContext& context, const Loss& loss, const trace::Site& met, Finding& finding) {
  const TraceView& view = context.view();
  const std::string type = trace::short_dtype_name(loss.dtype);
  const double step = std::ldexp(1.0, -trace::float_limits(loss.dtype).significand_bits);
  finding.precision_fault = !loss.in_fp32;
  finding.same_in_fp32 = loss.in_fp32;
  if (loss.absorbed) {
    finding.title = fmt::format("{:g} is lost beside a larger number in {}", loss.constant, type);
    finding.message = fmt::format(
        "{} adds {:g} to values near one, where {} has steps of {}; when the rest is subtracted again, nothing of it "
        "is "
        "left for {}.",
        view.describe(loss.site->id), loss.constant, type, number(step), zero_meets(view, met));
    finding.proof = fmt::format("{:g} beside 1 in {}, whose step there is {}", loss.constant, type, number(step));
  } else {
    const double distance = std::abs(std::abs(loss.constant) - 1);
    finding.title = fmt::format("1 {} {:.3g} is 1 in {}", std::abs(loss.constant) < 1 ? "-" : "+", distance, type);
    finding.message = fmt::format(
        "{} uses {:.12g} in {}, whose next value below 1 is 1 - {}, so it is 1 and nothing keeps {} from it.",
        view.describe(loss.site->id), loss.constant, type, number(step), zero_meets(view, met));
    finding.proof = fmt::format("{:.12g} becomes 1 in {} (step {})", loss.constant, type, number(step));
  }
  finding.evidence = {{"constant", loss.constant},
                      {"step_below_one", step},
                      {"same_in_fp32", loss.in_fp32 ? "yes" : "no"},
                      {"met_by", view.describe(met.id)}};
  if (loss.in_fp32) {
    finding.message += " In fp32 it is the same: this is not only a matter of mixed precision.";
    finding.fix = "add the small constant last, after the subtraction: (1 - x) + eps";
  } else {
    finding.fix =
        fmt::format("keep {} or more away from 1 in {}, or compute this in fp32: x.float()", number(2 * step), type);
  }
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  explain_loss(context, origin, loss_before(context, origin, Vanished::one), describe, finding);
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  report_unreached(context, Vanished::one, describe, findings);
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp503;
const Rule rule_amp503 = {
    .code = "AMP503",
    .name = "constant-rounds-to-one",
    .family = Family::lost_precision,
    .severity = Severity::error,
    .summary = "a constant close to one is one in the type it meets, and a log, division or root fails at it",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
