// How the values of operators grow over the steps of a run: what tells a run that diverges, or one that drifts towards
// the end of its type, from a healthy model that overflows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

struct GrowthSample {
  double step = 0;
  double exponent = 0;  ///< log2 of the largest magnitude
};

/// Slope by the median over all pairs of samples (Theil 1950, Sen 1968): a few outliers do not move it.
struct Trend {
  double slope = 0;  ///< powers of two a step
  double low = 0;    ///< lower and upper quartile of the slopes
  double high = 0;
  double rising = 0;  ///< share of pairs in which the later one is larger
};
[[nodiscard]] Trend trend_of(const std::vector<GrowthSample>& samples);

/// Largest finite magnitudes of a site's results in the sampled steps up to `until`, oldest first.
[[nodiscard]] std::vector<GrowthSample> growth_samples(const TraceView& view, std::int64_t site, std::int64_t until);

/// A run whose layers grow by orders of magnitude within some steps.
struct Divergence {
  std::int64_t site = trace::none;  ///< that grew most
  double first = 0;                 ///< largest value in the first sample, and in the last before the overflow
  double last = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double bits_per_step = 0;
  std::int64_t growing = 0;  ///< layers that grew, of `layers`
  std::int64_t layers = 0;
};
/// Whether matrix products of the forward pass were diverging before `step`, judged by those that were sampled at least
/// three times up to then.
[[nodiscard]] std::optional<Divergence> divergence_before(const TraceView& view, std::int64_t step);

/// A run whose loss and whose gradients have grown together. Both are unscaled, and looked at in every step, so that
/// this tells of a divergence within few steps, of which no sampled step lies in between.
struct LossGrowth {
  double loss_first = 0;       ///< lower median of the magnitudes of the first steps
  double loss_last = 0;        ///< largest of the last steps before the overflow
  double gradients_first = 0;  ///< the same of the gradients' norm
  double gradients_last = 0;
  std::int64_t last_step = 0;
};
[[nodiscard]] std::optional<LossGrowth> loss_growth_before(const TraceView& view, std::int64_t step);

}  // namespace ampscope::analyzers
