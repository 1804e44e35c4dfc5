#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/vanished.h"

namespace ampscope::analyzers {

namespace {

Loss loss_of(const RuleContext& context, const Origin& origin) {
  if (origin.kind != trace::OriginKind::producer || origin.from_intended_infinity) return {};
  const Loss loss = find_loss(context.view(), *origin.event, *origin.site);
  return loss.what == Vanished::value ? loss : Loss{};
}

Claim claim(const RuleContext& context, const Origin& origin) {
  return loss_of(context, origin).claim;
}

void describe(const RuleContext& context, const Loss& loss, const trace::Site& met, Finding& finding) {
  const TraceView& view = context.view();
  const std::string type = trace::short_dtype_name(loss.dtype);
  const double smallest = std::ldexp(1.0, trace::float_limits(loss.dtype).smallest_subnormal);
  const bool complement = base_name(loss.site->name) == "rsub" || base_name(loss.site->name) == "sub";
  finding.title = complement ? fmt::format("the distance to one is lost in {}", type)
                             : fmt::format("values become zero in {} before {}", type, zero_meets(view, met));
  finding.message = fmt::format("The result of {} holds zeros that {} needs to be small values: {}.",
                                view.describe(loss.site->id), zero_meets(view, met), loss.because);
  finding.proof = complement ? fmt::format("{} has steps of {} below one", type,
                                           number(std::ldexp(1.0, -trace::float_limits(loss.dtype).significand_bits)))
                             : fmt::format("{} ends at {}", type, number(smallest));
  finding.evidence = {{"smallest_value", smallest}, {"why", loss.because}, {"met_by", view.describe(met.id)}};
  finding.fix = "compute this part in fp32, or in the log domain (logsigmoid, log_softmax, logsumexp): x.float()";
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const Loss loss = loss_of(context, origin);
  const trace::Phase phase = loss.site->phase;
  finding.culprit = context.culprit(loss.site->id);
  finding.culprit.phase = phase;
  describe(context, loss, *origin.site, finding);
  finding.message += describe_outcome(origin);
  finding.proof += " · " + describe_bad(output_counts(*origin.event));
  if (finding.severity < Severity::error) finding.severity = Severity::error;
  add_scene(origin, finding);
}

/// What reached neither loss nor weights did no harm that the run shows; it is still not what the program means.
void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  for (const Unreached& lost : unreached_losses(context, Vanished::value)) {
    Finding finding = context.finding();
    finding.severity = Severity::warning;
    finding.culprit = context.culprit(lost.loss.site->id);
    finding.steps = {lost.event->step, lost.event->step, 1};
    const trace::SiteTotals& totals = context.view().totals(lost.op->id);
    if (totals.nonfinite_steps > 0)
      finding.steps = {totals.first_nonfinite_step, totals.last_nonfinite_step, totals.nonfinite_steps};
    describe(context, lost.loss, *lost.op, finding);
    finding.message += " Neither the loss nor a gradient was seen to depend on it.";
    finding.proof += " · " + describe_bad(output_counts(*lost.event));
    findings.push_back(std::move(finding));
  }
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
