#include "analyzers/scaler/service.h"

#include <algorithm>

#include "analyzers/core/protocol.h"

namespace ampscope::analyzers {

std::vector<Service> scaler_services(const TraceView& view) {
  std::map<std::int64_t, Service> services;
  std::set<std::int64_t> unscaled;  // since the last update
  walk_protocol(view, [&](const StepSpan&, const trace::ProtocolEvent& event, const ProtocolState&) {
    const bool fused = event.kind == trace::EventKind::optimizer_step && (event.flags & trace::event_flag::fused) != 0;
    if (event.kind == trace::EventKind::unscale || fused) unscaled.insert(event.object);
    if (event.kind != trace::EventKind::scaler_update) return;
    services[event.object].optimizers.insert(unscaled.begin(), unscaled.end());
    unscaled.clear();
  });
  std::vector<Service> result;
  for (auto& [scaler, service] : services) {
    const auto updates = view.updates(scaler);
    if (updates.empty()) continue;
    service.scaler = scaler;
    service.first_step = updates.front()->step;
    service.last_step = updates.back()->step;
    result.push_back(std::move(service));
  }
  std::sort(result.begin(), result.end(),
            [](const Service& a, const Service& b) { return a.first_step < b.first_step; });
  return result;
}

std::int64_t leading_skips(const TraceView& view, std::int64_t scaler) {
  std::int64_t count = 0;
  for (const trace::ScalerUpdate* update : view.updates(scaler)) {
    if (update->found_inf == 0) break;
    ++count;
  }
  return count;
}

}  // namespace ampscope::analyzers
