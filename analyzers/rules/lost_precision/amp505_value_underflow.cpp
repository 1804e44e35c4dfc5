#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/loss_finding.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext& context, const Origin& origin) {
  return loss_before(context, origin, Vanished::value).claim;
}

void describe(const RuleContext& context, const Loss& loss, const trace::Site& met, Finding& finding) {
  const TraceView& view = context.view();
  const std::string type = trace::short_dtype_name(loss.dtype);
  const double smallest = std::ldexp(1.0, trace::float_limits(loss.dtype).smallest_subnormal);
  const bool complement = loss.at_one || base_name(loss.site->name) == "rsub" || base_name(loss.site->name) == "sub";
  finding.title = complement ? fmt::format("the distance to one is lost in {}", type)
                             : fmt::format("values become zero in {} before {}", type, zero_meets(view, met));
  finding.message = fmt::format("The result of {} holds {} that {} needs to be {} values: {}.",
                                view.describe(loss.site->id), loss.at_one ? "ones" : "zeros", zero_meets(view, met),
                                loss.at_one ? "smaller" : "small", loss.because);
  finding.proof = complement ? fmt::format("{} has steps of {} below one", type,
                                           number(std::ldexp(1.0, -trace::float_limits(loss.dtype).significand_bits)))
                             : fmt::format("{} ends at {}", type, number(smallest));
  finding.evidence = {{"smallest_value", smallest}, {"why", loss.because}, {"met_by", view.describe(met.id)}};
  finding.fix = "compute this part in fp32, or in the log domain (logsigmoid, log_softmax, logsumexp): x.float()";
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  if (finding.severity < Severity::error) finding.severity = Severity::error;
  explain_loss(context, origin, loss_before(context, origin, Vanished::value), describe, finding);
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  report_unreached(context, Vanished::value, describe, findings);
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp505;
const Rule rule_amp505 = {
    .code = "AMP505",
    .name = "value-underflow",
    .family = Family::lost_precision,
    .severity = Severity::warning,
    .summary = "values that a division, log or root needs are flushed to zero",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
