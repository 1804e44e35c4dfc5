#include "analyzers/core/exchange.h"

#include <algorithm>

namespace ampscope::analyzers {

namespace {

/// Whether the weights became non-finite in a step that this process took while another one skipped it: what the
/// other one had found came with a collective, after this one's own check (AMP801).
bool spoilt_by_lone_step(const RuleContext& context, const Origin& origin) {
  const TraceView& view = context.view();
  const auto& events = view.trace().nonfinite_events;
  for (std::int64_t step = origin.steps.first; step >= std::max<std::int64_t>(origin.steps.first - 2, 0); --step) {
    const bool arrived = std::any_of(events.begin(), events.end(), [&](const trace::NonfiniteEvent& event) {
      const trace::Site* const op = event.step == step ? view.outermost_op(event.site) : nullptr;
      // Of the exchange only the first call is kept; that the optimizer met such values is told again.
      return op != nullptr && (is_collective(*op) || op->phase == trace::Phase::optimizer);
    });
    if (!arrived || view.skipped(step)) continue;
    return std::any_of(context.processes().begin(), context.processes().end(), [&](const ProcessAnalysis& process) {
      return &process.view != &view && process.view.skipped(step);
    });
  }
  return false;
}

}  // namespace

bool is_collective(const trace::Site& site) noexcept {
  return site.name.starts_with("c10d::") || site.name.find("all_reduce") != std::string::npos ||
         site.name.find("allreduce") != std::string::npos || site.name.find("all_gather") != std::string::npos;
}

bool is_gradient_exchange(const trace::Site& site) noexcept {
  const auto named = [&](std::string_view part) { return site.name.find(part) != std::string::npos; };
  if (site.name.starts_with("DistributedDataParallel") || named("distributed.ddp.reducer")) return true;
  // One of the backward pass, other than gathering the weights for it, carries gradients; so does what scatters sums,
  // and a pipeline's stages send theirs to the one before.
  const bool gathers = named("gather") || named("broadcast");
  if (is_collective(site) && site.phase == trace::Phase::backward && !gathers) return true;
  return named("reduce_scatter") || site.name.starts_with("c10d::send") || site.name.starts_with("c10d::recv");
}

bool brought_by_exchange(const RuleContext& context, const Origin& origin) {
  const TraceView& view = context.view();
  const auto& sites = view.trace().sites;
  if (context.processes().size() < 2 || std::none_of(sites.begin(), sites.end(), is_collective)) return false;
  if (origin.parameter != trace::none && spoilt_by_lone_step(context, origin)) return true;
  const bool collective = is_collective(*view.outermost_op(origin.site->id));
  // What this process computed from finite inputs, or what made its own loss non-finite, is its own affair.
  if (!collective && (origin.kind == trace::OriginKind::producer || origin.outcome.loss_nonfinite)) return false;
  return std::any_of(context.processes().begin(), context.processes().end(), [&](const ProcessAnalysis& process) {
    if (&process.view == &view) return false;
    return std::any_of(process.root_cause.origins.begin(), process.root_cause.origins.end(), [&](const Origin& other) {
      const bool same_steps = other.steps.first <= origin.steps.last && origin.steps.first <= other.steps.last;
      const bool own = other.kind == trace::OriginKind::producer || other.outcome.loss_nonfinite;
      return same_steps && own && !is_collective(*process.view.outermost_op(other.site->id));
    });
  });
}

}  // namespace ampscope::analyzers
