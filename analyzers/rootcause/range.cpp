#include "analyzers/rootcause/range.h"

#include <algorithm>

#include "analyzers/core/casts.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/growth.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

constexpr double always = 0.9;  ///< share of steps
constexpr std::int64_t fewest_steps = 3;
/// Activations or weights from which a layer's result passes 65 504 because they are large, and not because many are
/// summed.
constexpr double large_value = 64;

bool takes_parameter(const TraceView& view, const trace::Site& site) {
  for (const trace::Site* at = &site; at != nullptr && at->kind == trace::SiteKind::op; at = view.parent(*at)) {
    const auto is_one = [&view](const trace::TensorType& input) { return is_weight(view, input); };
    if (std::any_of(at->inputs.begin(), at->inputs.end(), is_one)) return true;
  }
  return false;
}

/// Largest weight, or activation that another operator has made, among the inputs: no data.
double largest_input(const trace::NonfiniteEvent& event) {
  double largest = 0;
  for (const trace::WitnessTensor& input : event.inputs) {
    const bool made = input.type.producer != trace::none || input.type.parameter != trace::none;
    if (made && input.looked_at && trace::is_floating(input.type.dtype))
      largest = std::max(largest, input.stats.absmax);
  }
  return largest;
}

/// Whether a layer with weights stands before it.
bool follows_layer(const TraceView& view, const trace::Site& site) {
  const std::vector<bool> before = view.ancestors(site.id);
  for (std::size_t id = 0; id < before.size(); ++id) {
    if (!before[id] || static_cast<std::int64_t>(id) == site.id) continue;
    const trace::Site* const other = view.site(static_cast<std::int64_t>(id));
    if (other == nullptr || op_kind(other->name) != OpKind::matmul || other->phase != trace::Phase::forward) continue;
    if (view.outermost_op(other->id) != view.outermost_op(site.id) && takes_parameter(view, *other)) return true;
  }
  return false;
}

}  // namespace

bool beyond_range_from_start(const TraceView& view, const Origin& origin) {
  if (origin.phase == trace::Phase::backward || !made_here(origin)) return false;
  const trace::Site& site = *origin.site;
  if (compute_dtype(*origin.event, site) != trace::DType::float16) return false;
  const std::string_view base = base_name(site.name);
  // Activations that are added to activations; the sum of two numbers is one of the loss.
  const bool residual = (base == "add" || base == "add_") && origin.op == OpKind::elementwise &&
                        output_counts(*origin.event).elements > 1;
  if (!(origin.op == OpKind::matmul && takes_parameter(view, site)) && !residual) return false;
  if (largest_input(*origin.event) < large_value || !follows_layer(view, site)) return false;
  // Each step was kept from the weights, so the next one shows the same weights again; layers at the limit take turns
  // in being the first.
  const auto& outcomes = view.outcomes();
  const auto lost = std::count_if(outcomes.begin(), outcomes.end(), [](const auto& outcome) {
    return outcome.second.loss_nonfinite && outcome.second.skipped;
  });
  return view.steps() >= fewest_steps && view.outcome(0).loss_nonfinite &&
         static_cast<double>(lost) >= always * static_cast<double>(view.steps());
}

Claim behind_wider_cause(const TraceView& view, const Origin& origin, Claim claim) {
  if (claim != Claim::proven) return claim;
  const bool explained = beyond_range_from_start(view, origin) || divergence_before(view, origin.steps.first) ||
                         loss_growth_before(view, origin.steps.first);
  return explained ? Claim::supported : claim;
}

}  // namespace ampscope::analyzers
