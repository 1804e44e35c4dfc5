#include "analyzers/core/scale_dependence.h"

#include <set>

#include "analyzers/core/op_kinds.h"

namespace ampscope::analyzers {

namespace {

using trace::Phase;
using trace::Site;

/// Whether what a site makes comes from values of the forward pass alone, also by way of other calls of the backward
/// pass. `visited` holds the sites on the way.
bool of_forward_alone(const TraceView& view, std::int64_t id, std::set<std::int64_t>& visited) {
  const Site* const site = view.site(id);
  // The gradient of the loss with respect to itself, from which all others come, is a constant.
  if (site == nullptr || op_kind(site->name) == OpKind::create) return false;
  if (site->phase == Phase::forward) return true;
  if (site->phase != Phase::backward || !visited.insert(id).second) return false;
  bool any = false;
  for (const trace::TensorType& input : site->inputs) {
    if (!trace::is_floating(input.dtype)) continue;
    if (!of_forward_alone(view, input.producer, visited)) return false;
    any = true;
  }
  return any;
}

}  // namespace

bool takes_no_gradient(const TraceView& view, const trace::NonfiniteEvent& event) {
  bool any = false;
  for (const trace::WitnessTensor& input : event.inputs) {
    if (!trace::is_floating(input.type.dtype)) continue;
    std::set<std::int64_t> visited;
    if (!of_forward_alone(view, input.type.producer, visited)) return false;
    any = true;
  }
  return any;
}

}  // namespace ampscope::analyzers
