#include "probe/observe/step_plan.h"

#include <algorithm>
#include <utility>

#include "probe/observe/announcements.h"
#include "probe/observe/python_frames.h"

namespace ampscope::observe {
namespace {

/// Whether steps may pass of which only optimizers and scaler are seen: only if all that ends a step announces itself.
bool outcome_suffices(Session& session) {
  return python_connected() && session.protocol.optimizer_seen &&
         !session.unannounced_scaler.load(std::memory_order_relaxed);
}

/// How closely the next step is looked at when what that costs is limited. The caller holds the protocol's lock.
void plan_within_budget(Session& session, std::int64_t step) {
  Protocol& p = session.protocol;
  using record::StepMode;
  record::BudgetPlanner& budget = *session.budget;
  record::BudgetPlanner::Plan plan;
  if (step < 3) {
    plan = budget.first();
  } else if (step < session.full_until.load(std::memory_order_relaxed)) {
    plan = budget.next(StepMode::full);
  } else {
    const bool suffices = outcome_suffices(session);
    if (!suffices && !std::exchange(p.budget_refusal_told, true)) {
      record::notify(
          session.recorder.options(), "warning",
          "the budget may be exceeded: where this program's steps end shows only in its operators, which are "
          "watched in every step");
    }
    plan = budget.next(suffices ? StepMode::ranges : StepMode::operators);
  }
  const bool operators = plan.mode >= StepMode::operators;
  session.mode.store(plan.mode, std::memory_order_relaxed);
  session.gradients_drawn.store(plan.gradients, std::memory_order_relaxed);
  session.gradient_weight.store(plan.gradient_weight, std::memory_order_relaxed);
  session.full_numerics.store(plan.mode == StepMode::full, std::memory_order_relaxed);
  session.numerics_weight.store(plan.numerics_weight, std::memory_order_relaxed);
  if (session.level() == trace::Level::shadow) {
    session.comparison_weight.store(plan.mode == StepMode::full ? plan.numerics_weight : 0);
  }
  p.ledger.see_outcome_only(!operators);
  announce(operators ? Announced::everything : Announced::ranges);
  const record::BudgetPlanner::Cost cost = budget.cost();
  session.recorder.budget_is({.operator_steps = budget.operator_steps(),
                              .gradient_steps = budget.gradient_steps(),
                              .full_steps = budget.full_steps(),
                              .cost = cost.share,
                              .cost_low = cost.low,
                              .cost_high = cost.high});
}

}  // namespace

void plan_step(Session& session, std::int64_t step) {
  if (session.budget) {
    plan_within_budget(session, step);
    return;
  }
  bool full = step < session.full_until.load(std::memory_order_relaxed);
  double weight = 1;
  const std::int64_t planned = session.next_full_step.load(std::memory_order_relaxed);
  if (step >= planned && step >= 2) {
    full = true;
    const std::int64_t gap = std::max<std::int64_t>(2, step < record::settled_steps ? step / 4 : step / 2);
    weight = static_cast<double>(gap);
    session.next_full_step.store(step + gap, std::memory_order_relaxed);
  }
  if (session.level() == trace::Level::shadow) session.comparison_weight.store(full ? weight : 0);
  if (session.level() >= trace::Level::full) {
    full = true;
    weight = 1;
  }
  session.full_numerics.store(full && session.looks_at_outputs(), std::memory_order_relaxed);
  session.numerics_weight.store(weight, std::memory_order_relaxed);
}

}  // namespace ampscope::observe
