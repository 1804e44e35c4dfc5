// The flight recorder: the last calls of one thread, so that what led to an anomaly is known when it is noticed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "trace/model.h"

namespace ampscope::record {

/// A ring of calls and a copy of it as it stood at an anomaly. For one thread. Adding and freezing allocate nothing.
class RecentCalls {
 public:
  static constexpr std::size_t size = 256;

  /// `absmax`: of the outputs that were looked at, NaN where none was.
  void add(std::int64_t step, std::int64_t site, float absmax, bool nonfinite) noexcept {
    trace::RecentCall& call = ring_[static_cast<std::size_t>(added_) % size];
    call.order = added_++;
    call.step = step;
    call.site = site;
    call.absmax = absmax;
    call.nonfinite = nonfinite;
  }

  /// Keeps the ring as it stands, unless one is kept already. `anomaly_order`: of the event; none where no output of an
  /// op showed the anomaly.
  void freeze(std::int64_t step, std::int64_t anomaly_order) noexcept {
    if (frozen_) return;
    frozen_ = true;
    frozen_at_ = added_;
    frozen_step_ = step;
    frozen_order_ = anomaly_order;
    kept_ = ring_;
  }
  [[nodiscard]] bool frozen() const noexcept { return frozen_; }
  /// The anomaly did no harm.
  void thaw() noexcept { frozen_ = false; }
  /// What is kept, oldest first.
  [[nodiscard]] trace::FlightRecord take() {
    trace::FlightRecord record;
    record.step = frozen_step_;
    record.anomaly_order = frozen_order_;
    const std::int64_t count = std::min(frozen_at_, static_cast<std::int64_t>(size));
    for (std::int64_t i = frozen_at_ - count; i < frozen_at_; ++i)
      record.calls.push_back(kept_[static_cast<std::size_t>(i) % size]);
    frozen_ = false;
    return record;
  }
  void clear() noexcept {
    added_ = 0;
    frozen_ = false;
  }

 private:
  std::array<trace::RecentCall, size> ring_{};
  std::array<trace::RecentCall, size> kept_{};
  std::int64_t added_ = 0;
  bool frozen_ = false;
  std::int64_t frozen_at_ = 0;
  std::int64_t frozen_step_ = 0;
  std::int64_t frozen_order_ = trace::none;
};

}  // namespace ampscope::record
