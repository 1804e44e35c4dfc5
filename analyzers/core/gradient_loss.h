// Share of the gradients of a run that fp16 flushed to zero and fp32 would have kept.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyzers/core/finding.h"
#include "analyzers/core/flush.h"
#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

struct ParameterLoss {
  std::int64_t parameter = trace::none;
  double share = 0;       ///< of its elements, over the steps looked at
  bool all_zero = false;  ///< not one element got through
};

/// What is known of one parameter's gradient in one window.
struct WindowLoss {
  const trace::GradientWindow* window = nullptr;
  FlushEstimate estimate;  ///< from what got through
  double zeros = 0;        ///< share of its elements
  double lost = 0;         ///< share of its elements; at least what `estimate` says
};

/// Exponent of the smallest positive value that the gradients of a window can have had, unscaled.
[[nodiscard]] int smallest_kept(const trace::GradientWindow& window);

/// Of windows of fp16 gradients that hold other values than zero, in their order. What a parameter's best window has
/// tells of its others, so they are to be given together.
[[nodiscard]] std::vector<WindowLoss> window_losses(std::span<const trace::GradientWindow* const> windows);

struct GradientLoss {
  double elements = 0;    ///< looked at, weighted
  double share = 0;       ///< of them flushed to zero; an estimate, see core/flush.h
  double cast_share = 0;  ///< largest share lost in one cast or product of the backward pass that was looked at in full
  std::int64_t cast_site = trace::none;   ///< where
  std::int64_t all_zero = 0;              ///< parameters whose gradient was entirely flushed
  StepSpan steps;                         ///< windows of steps with a notable loss
  double scale = 1;                       ///< loss scale in use where the loss was largest
  std::optional<double> better_scale;     ///< smallest power of two that keeps what is lost, where one fits
  bool better_scale_keeps_all = false;    ///< false: it is the largest that fits, and some stays lost
  std::vector<ParameterLoss> parameters;  ///< with a loss, worst first
};

/// `notable` is the share from which a window of steps counts as losing gradients.
[[nodiscard]] GradientLoss measure_gradient_loss(const TraceView& view, double notable);

}  // namespace ampscope::analyzers
