#include "analyzers/scaler/replay.h"

#include <bit>

namespace ampscope::analyzers {

namespace {

/// Equal bits, so that two NaN scales agree and 0 differs from -0.
bool same(const ScalerState& a, const ScalerState& b) noexcept {
  return std::bit_cast<std::uint32_t>(a.scale) == std::bit_cast<std::uint32_t>(b.scale) && a.tracker == b.tracker;
}

/// Setting what is there is a clamp that does not bind, where the step has an update of its own.
bool beside_an_update(std::span<const trace::ScalerUpdate* const> updates, std::size_t i) {
  const auto own = [&](std::size_t other) {
    return other < updates.size() && !updates[other]->assigned && updates[other]->step == updates[i]->step;
  };
  return own(i + 1) || (i > 0 && own(i - 1));
}

}  // namespace

ScalerReplay replay(std::span<const trace::ScalerUpdate* const> updates) {
  ScalerReplay result;
  const trace::ScalerUpdate* previous = nullptr;
  ScalerState left{0, 0};  // by the update before
  bool counted = false;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const trace::ScalerUpdate& update = *updates[i];
    ScalerState before{update.scale_before, update.tracker_before};
    ScalerState after{update.scale_after, update.tracker_after};
    // Setting the scale leaves the tracker alone, and the record does not hold it.
    if (update.assigned) before.tracker = after.tracker = left.tracker;
    if (previous != nullptr) {
      if (!same(left, before)) {
        result.disagreements.push_back({Disagreement::changed_between, update.step, i, left, before});
      }
      if (factors_of(*previous) != factors_of(update) && !update.assigned && !previous->assigned) {
        result.disagreements.push_back({Disagreement::settings_changed, update.step, i, before, before});
      }
      const bool again = previous->step == update.step && !update.assigned && !previous->assigned;
      if (again && !counted) ++result.several_updates_in_a_step;
      counted = again;
    }
    if (update.assigned) {
      if (before.scale != after.scale || !beside_an_update(updates, i))
        result.disagreements.push_back({Disagreement::assigned, update.step, i, before, after});
    } else if (const ScalerState expected = updated(before, update.found_inf, factors_of(update));
               !same(expected, after)) {
      result.disagreements.push_back({Disagreement::not_as_computed, update.step, i, expected, after});
    }
    previous = &update;
    left = after;
  }
  return result;
}

}  // namespace ampscope::analyzers
