// Recommends settings for a loss scaler from a recorded run.
//
// Settings are chosen on the first two thirds of the run and tried on the last. They are compared by one measure: the
// share of all gradient elements that did not reach the weights (PredictedLoss::lost). What loses more than today's
// settings, on the whole run or on the part kept back, is never recommended; where nothing is gained nothing is
// changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/core/report.h"
#include "analyzers/scaler/what_if.h"

namespace ampscope::analyzers {

/// One setting and why it is recommended.
struct SettingChoice {
  std::string name;  ///< "init_scale"
  double today = 0;
  double recommended = 0;
  std::string reason;  ///< a sentence with its number
};

/// Why no loss scale keeps the gradients of this run.
struct NoScaleFits {
  bool forward = false;       ///< most steps are non-finite whatever the scale
  double share_of_steps = 0;  ///< in which no scale fits
  double largest_scale = 0;   ///< median of the largest power of two that overflows nothing in these steps
  double lost = 0;            ///< mean share flushed to zero at it, in these steps
  std::int64_t all_zero = 0;  ///< parameters of which not one gradient element is kept
  double range = 0;           ///< powers of two from the smallest notable gradients to the largest value; 0: not known
  std::vector<PredictedParameter> parameters;  ///< that lose most at it, worst first, few
};

struct Tuning {
  std::int64_t scaler = trace::none;
  ScalerSettings today;
  ScalerSettings recommended;
  bool changed = false;
  Prediction predicted_today;
  Prediction predicted_recommended;
  std::int64_t actual_skips = 0;
  std::size_t kept_back_from = 0;  ///< index of the first update that took no part in the choice
  std::vector<SettingChoice> choices;
  std::optional<NoScaleFits> no_scale_fits;
  double measured = 0;     ///< share of the updates whose limit was seen in that very step
  bool can_choose = true;  ///< false: too little was recorded to choose settings by, so today's are kept
};

[[nodiscard]] Tuning tune(const ScaleModel& model, const ScalerSettings& today);

/// Tunes a scaler of a run from its own settings; empty where too little was recorded.
[[nodiscard]] std::optional<Tuning> tune(const TraceView& view, std::int64_t scaler);

/// Settings as the recorded updates of a scaler show them; empty without one.
[[nodiscard]] std::optional<ScalerSettings> recorded_settings(const TraceView& view, std::int64_t scaler);

/// In one sentence: the most important of the choices.
[[nodiscard]] std::string summary(const Tuning& tuning);

}  // namespace ampscope::analyzers
