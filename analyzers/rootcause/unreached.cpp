#include "analyzers/rootcause/unreached.h"

#include <algorithm>

#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// Whether a loss that is computed without gradients, as in validation, is non-finite because of what `event` took in.
/// Data that hold NaN or infinity on purpose are left out before such a loss.
bool spoils_validation(const TraceView& view, const trace::NonfiniteEvent& event) {
  const auto events = view.nonfinite_events(event.step);
  return std::any_of(events.begin(), events.end(), [&](const trace::NonfiniteEvent* other) -> bool {
    // l1_loss consists of other operators, and what is looked at is theirs.
    const trace::Site* const site = view.outermost_op(other->site);
    if (site == nullptr || site->grad_enabled || op_kind(site->name) != OpKind::loss) return false;
    if (other->order < event.order || output_counts(*other).total() == 0) return false;
    return view.ancestors(other->site)[static_cast<std::size_t>(event.site)];
  });
}

bool makes_or_brings(const TraceView& view, const trace::NonfiniteEvent& event) {
  if (event.kind == trace::OriginKind::producer) return true;
  return event.kind == trace::OriginKind::input && spoils_validation(view, event);
}

}  // namespace

std::vector<Origin> unreached_origins(const RuleContext& context) {
  const TraceView& view = context.view();
  std::vector<Origin> found;
  for (const trace::NonfiniteEvent* event : context.root_cause().unreached) {
    const trace::Site* const site = view.site(event->site);
    if (site == nullptr || !makes_or_brings(view, *event)) continue;
    if (site->phase != trace::Phase::forward && site->phase != trace::Phase::other) continue;
    // What is limited or left out afterwards is handled: the program knows that it can be infinite.
    if (discarded_by(view, *site) != nullptr) continue;
    Origin origin;
    origin.event = event;
    origin.site = site;
    origin.kind = event->kind;
    origin.op = op_kind(site->name);
    origin.phase = event->kind == trace::OriginKind::input ? trace::Phase::data : site->phase;
    origin.outcome = view.outcome(event->step);
    origin.steps = {event->step, event->step, 1};
    const trace::SiteTotals& totals = view.totals(site->id);
    if (totals.nonfinite_steps > 0)
      origin.steps = {totals.first_nonfinite_step, totals.last_nonfinite_step, totals.nonfinite_steps};
    found.push_back(std::move(origin));
  }
  return found;
}

}  // namespace ampscope::analyzers
