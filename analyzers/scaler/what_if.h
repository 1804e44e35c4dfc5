// What a run would have met with other settings of its loss scaler.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/core/report.h"
#include "analyzers/scaler/grad_scaler_model.h"
#include "analyzers/scaler/scale_model.h"

namespace ampscope::analyzers {

/// Of a stretch of updates.
struct PredictedLoss {
  std::int64_t updates = 0;
  std::int64_t skips = 0;
  double flushed = 0;  ///< sum over the steps taken of the share of gradient elements flushed to zero
  /// Share of all gradient elements of all steps that did not reach the weights: those of skipped steps and those
  /// flushed to zero. This is what settings are compared by.
  [[nodiscard]] double lost() const noexcept {
    return updates > 0 ? (static_cast<double>(skips) + flushed) / static_cast<double>(updates) : 0;
  }
  [[nodiscard]] double flushed_share() const noexcept {
    return updates > skips ? flushed / static_cast<double>(updates - skips) : 0;
  }
};

struct PredictedParameter {
  std::int64_t parameter = trace::none;
  double flushed = 0;     ///< share of its elements, over the steps looked at
  double overflowed = 0;  ///< …
};

struct Prediction {
  PredictedLoss whole;
  PredictedLoss kept_back;         ///< the updates from `kept_back_from` on
  std::int64_t skips_low = 0;      ///< the number of skips lies between these
  std::int64_t skips_high = 0;     ///< …
  std::int64_t settled_after = 0;  ///< updates until the first stretch of 20 without a skip, or until the end
  double final_scale = 0;
  double lowest_scale = 0;
  std::vector<ScalerTimelineEntry> timeline;   ///< when asked for
  std::vector<PredictedParameter> parameters;  ///< when asked for, worst first
};

struct WhatIfOptions {
  std::size_t kept_back_from = SIZE_MAX;  ///< index of an update
  bool interval = false;                  ///< fill skips_low and skips_high
  bool details = false;                   ///< fill timeline and parameters
};

[[nodiscard]] Prediction predict(const ScaleModel& model, const ScalerSettings& settings,
                                 const WhatIfOptions& options = {});

}  // namespace ampscope::analyzers
