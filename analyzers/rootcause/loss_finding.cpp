#include "analyzers/rootcause/loss_finding.h"

#include <utility>

#include "analyzers/rootcause/evidence.h"

namespace ampscope::analyzers {

Loss loss_before(const RuleContext& context, const Origin& origin, Vanished what) {
  if (origin.kind != trace::OriginKind::producer || origin.from_intended_infinity) return {};
  const Loss loss = find_loss(context.view(), *origin.event, *origin.site);
  return loss.what == what ? loss : Loss{};
}

void explain_loss(const RuleContext& context, const Origin& origin, const Loss& loss, DescribeLoss describe,
                  Finding& finding) {
  finding.culprit = context.culprit(loss.site->id);
  finding.culprit.phase = loss.site->phase;
  describe(context, loss, *origin.site, finding);
  finding.message += describe_outcome(origin);
  finding.proof += " · " + describe_bad(output_counts(*origin.event));
  add_scene(origin, finding);
}

void report_unreached(const RuleContext& context, Vanished what, DescribeLoss describe,
                      std::vector<Finding>& findings) {
  for (const Unreached& lost : unreached_losses(context, what)) {
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

}  // namespace ampscope::analyzers
