// What a TrainingExecutor announces while it trains.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace ampscope::executor {

/// Parts of a step, in this order. forward and backward come once per micro-batch; unscale only with an enabled scaler,
/// clip only with clipping, update only with an enabled scaler.
enum class Phase : std::uint8_t { forward, backward, unscale, clip, optimizer, update };

/// What one update of the gradient scaler did.
struct ScalerEvent {
  std::int64_t step = 0;
  double scale_before = 0;
  double scale_after = 0;
  std::int64_t growth_tracker = 0;  ///< after the update
  bool found_inf = false;           ///< a gradient of at least one optimizer was not finite
};

struct StepReport {
  std::int64_t step = 0;           ///< from 0; skipped steps count
  std::int64_t micro_batches = 0;  ///< fewer than the accumulation asked for at the end of the data
  at::Tensor loss;            ///< mean over the step's micro-batches by their weights, neither scaled nor in the graph
  std::vector<bool> skipped;  ///< by optimizer: its gradients were not finite, its parameters stayed as they were
  std::vector<double> gradient_norms;  ///< by optimizer, before clipping; empty unless the norm is clipped

  /// Whether at least one optimizer moved its parameters.
  [[nodiscard]] bool taken() const {
    for (const bool one : skipped) {
      if (!one) return true;
    }
    return false;
  }
};

/// Every begin has its end in the same step unless step_abandoned() comes in between. An exception thrown here ends the
/// step as one thrown by the model does. Steps and micro-batches count from 0.
class TrainingObserver {
 public:
  TrainingObserver() = default;
  virtual ~TrainingObserver() = default;
  TrainingObserver(const TrainingObserver&) = delete;
  TrainingObserver& operator=(const TrainingObserver&) = delete;
  TrainingObserver(TrainingObserver&&) = delete;
  TrainingObserver& operator=(TrainingObserver&&) = delete;

  virtual void step_begin(std::int64_t /*step*/) {}
  virtual void micro_batch_begin(std::int64_t /*step*/, std::int64_t /*micro_batch*/) {}
  virtual void phase_begin(std::int64_t /*step*/, Phase /*phase*/) {}
  virtual void phase_end(std::int64_t /*step*/, Phase /*phase*/) {}
  /// `loss` is this micro-batch's own, neither scaled nor weighted nor in the graph. Reading it may wait for the
  /// device.
  virtual void micro_batch_end(std::int64_t /*step*/, std::int64_t /*micro_batch*/, const at::Tensor& /*loss*/) {}
  virtual void scaler_updated(const ScalerEvent& /*event*/) {}
  /// The step is over and counted; its schedules have advanced.
  virtual void step_end(const StepReport& /*report*/) {}
  /// The step ended by an exception and is not counted; the next one has the same number.
  virtual void step_abandoned(std::int64_t /*step*/) noexcept {}
};

}  // namespace ampscope::executor
