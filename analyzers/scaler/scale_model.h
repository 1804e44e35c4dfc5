// What a run tells about other loss scales: for each step the largest scale at which nothing overflows, and for each
// stretch of steps the share of gradient elements that each scale flushes to zero.
//
// Multiplying a loss by another power of two moves every gradient by exactly that factor, so what one scale met says
// what another would have met, as long as gradients do not depend on it. They do through the steps that are skipped:
// weights then stay as they were. The interval of a prediction covers both readings, by data and by progress.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/core/flush.h"
#include "analyzers/core/trace_view.h"
#include "trace/model.h"

namespace ampscope::analyzers {

/// What one update of a scaler met.
struct StepLimit {
  std::int64_t step = 0;
  double scale = 0;      ///< smallest scale at which a gradient overflows; infinite when none is known to do so
  double low = 0;        ///< it lies between these
  double high = 0;       ///< …
  bool forced = false;   ///< non-finite whatever the scale: the loss itself was, or a derivative that has no value
  bool skipped = false;  ///< in the recorded run
};

/// Gradients of one parameter in a stretch of steps.
struct ParameterFlush {
  const trace::GradientWindow* window = nullptr;
  FlushEstimate estimate;
  double lost_as_recorded = 0;  ///< elements flushed at the scale in use; more than the estimate where zeros grew
  int recorded_log2 = 0;        ///< loss scale at which they were recorded
  bool all_zero = false;        ///< not one element got through, while others were seen to be flushed
  /// Elements that are zero at 2^`log2_scale` and are not in exact arithmetic.
  [[nodiscard]] double lost(int log2_scale) const;
  /// Elements that are infinite at 2^`log2_scale`.
  [[nodiscard]] double overflowed(int log2_scale) const;
};

/// Gradients of all parameters in a stretch of steps.
struct FlushSlice {
  static constexpr int lowest_log2 = -32;
  static constexpr std::size_t scales = 128;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double elements = 0;
  std::array<double, scales> share{};  ///< flushed to zero at scale 2^(lowest_log2 + index)
  std::vector<ParameterFlush> parameters;
  /// Share flushed at any scale; between two powers of two it lies between theirs.
  [[nodiscard]] double share_at(double scale) const noexcept;
};

/// What the program does to the scale besides its updates: update(new_scale), a state restored, a write of its own.
struct ProgramsHand {
  struct Assignment {
    std::size_t updates = 0;  ///< that came before it
    float scale = 0;
  };
  std::vector<Assignment> assigned;  ///< in order; empty where one of the bounds says it
  std::optional<float> ceiling;      ///< it never lets the scale be larger
  std::optional<float> floor;        ///< … smaller
  [[nodiscard]] bool any() const noexcept { return !assigned.empty() || ceiling || floor; }
};

struct ScaleModel {
  std::int64_t scaler = trace::none;
  std::vector<StepLimit> limits;   ///< by update; those that only set the scale are left out
  std::vector<FlushSlice> slices;  ///< by first step
  double measured = 0;             ///< share of the updates whose limit was seen in that very step
  std::int32_t first_tracker = 0;  ///< growth tracker at the first update: not 0 where a state was restored
  ProgramsHand hand;
};

/// Largest unscaled magnitude that overflows at scale 1: what rounds to more than fp16's largest value.
inline constexpr double overflows_from = 65520.0;

/// Empty where nothing about the size of gradients was recorded.
[[nodiscard]] std::optional<ScaleModel> make_scale_model(const TraceView& view, std::int64_t scaler);

/// Whether a non-finite gradient of that step comes from a value that no loss scale can change.
[[nodiscard]] bool no_scale_helps(const TraceView& view, std::int64_t step);

}  // namespace ampscope::analyzers
