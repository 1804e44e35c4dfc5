#include "analyzers/scaler/replay.h"

#include <bit>

namespace ampscope::analyzers {

namespace {

/// Equal bits, so that two NaN scales agree and 0 differs from -0.
bool same(const ScalerState& a, const ScalerState& b) noexcept {
  return std::bit_cast<std::uint32_t>(a.scale) == std::bit_cast<std::uint32_t>(b.scale) && a.tracker == b.tracker;
}

}  // namespace

ScalerReplay replay(std::span<const trace::ScalerUpdate* const> updates) {
  ScalerReplay result;
  const trace::ScalerUpdate* previous = nullptr;
  bool counted = false;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const trace::ScalerUpdate& update = *updates[i];
    const ScalerState before{update.scale_before, update.tracker_before};
    const ScalerState after{update.scale_after, update.tracker_after};
    if (previous != nullptr) {
      const ScalerState left{previous->scale_after, previous->tracker_after};
      if (!same(left, before)) {
        result.disagreements.push_back({Disagreement::changed_between, update.step, i, left, before});
      }
      if (factors_of(*previous) != factors_of(update) && !update.assigned && !previous->assigned) {
        result.disagreements.push_back({Disagreement::settings_changed, update.step, i, before, before});
      }
      const bool again = previous->step == update.step;
      if (again && !counted) ++result.several_updates_in_a_step;
      counted = again;
    }
    if (update.assigned) {
      result.disagreements.push_back({Disagreement::assigned, update.step, i, before, after});
    } else if (const ScalerState expected = updated(before, update.found_inf, factors_of(update));
               !same(expected, after)) {
      result.disagreements.push_back({Disagreement::not_as_computed, update.step, i, expected, after});
    }
    previous = &update;
  }
  return result;
}

}  // namespace ampscope::analyzers
