// The largest magnitude that the backward passes since the last update of the loss scale made in fp16: what tells how
// far the next larger scale is from overflowing.
#pragma once

#include <atomic>

namespace ampscope::observe {

/// Used from every thread that runs backward; the engine has one for each device.
class BackwardRange {
 public:
  void note(float magnitude) noexcept {
    float known = largest_.load(std::memory_order_relaxed);
    while (magnitude > known && !largest_.compare_exchange_weak(known, magnitude, std::memory_order_relaxed)) {
    }
  }
  /// The largest since the last call; 0 when nothing was looked at, infinite when something overflowed.
  [[nodiscard]] float take() noexcept { return largest_.exchange(0, std::memory_order_relaxed); }

 private:
  std::atomic<float> largest_{0};
};

/// Of the process: backward passes of all threads train the same model.
inline BackwardRange backward_range;

}  // namespace ampscope::observe
