#include "analyzers/core/exchange.h"

#include <algorithm>

namespace ampscope::analyzers {

bool is_collective(const trace::Site& site) noexcept {
  return site.name.starts_with("c10d::") || site.name.find("all_reduce") != std::string::npos ||
         site.name.find("allreduce") != std::string::npos || site.name.find("all_gather") != std::string::npos;
}

bool brought_by_exchange(const RuleContext& context, const Origin& origin) {
  const TraceView& view = context.view();
  const auto& sites = view.trace().sites;
  if (context.processes().size() < 2 || std::none_of(sites.begin(), sites.end(), is_collective)) return false;
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
