// Share of the gradients of a run that fp16 flushed to zero and fp32 would have kept.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/core/finding.h"
#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

struct ParameterLoss {
  std::int64_t parameter = trace::none;
  double share = 0;       ///< of its elements, over the steps looked at
  bool all_zero = false;  ///< not one element got through
};

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
