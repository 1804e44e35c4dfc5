// Replays the recorded updates of one scaler through the model and notes where the recording says something else: there
// somebody else than update() moved the scale.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzers/scaler/grad_scaler_model.h"
#include "trace/model.h"

namespace ampscope::analyzers {

enum class Disagreement : std::uint8_t {
  assigned,          ///< update(new_scale): the program set it
  changed_between,   ///< scale or tracker differ from what the update before left: restored state, a scale set by hand
  not_as_computed,   ///< the update itself gave another result than the model
  settings_changed,  ///< factors or interval differ from the update before
};

struct ScalerDisagreement {
  Disagreement kind = Disagreement::not_as_computed;
  std::int64_t step = 0;
  std::size_t update = 0;  ///< index into the updates replayed
  ScalerState expected;
  ScalerState recorded;
};

struct ScalerReplay {
  std::vector<ScalerDisagreement> disagreements;  ///< in order
  std::int64_t several_updates_in_a_step = 0;     ///< steps with more than one update
};

[[nodiscard]] ScalerReplay replay(std::span<const trace::ScalerUpdate* const> updates);

}  // namespace ampscope::analyzers
