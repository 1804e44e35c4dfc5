// Looks at tensors on a device whose results are not here yet: what was asked, in which slot, and what it was for.
//
// Nothing waits for the device. A look is enqueued behind what is on the tensor's stream, so it sees the values at that
// place and needs no hold on the tensor; its result is collected some time later, by whoever comes along next. When
// results do not come as fast as looks are asked for, looks are refused and counted.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "probe/stats/device.h"
#include "probe/stats/flat_stats.h"
#include "trace/model.h"

namespace ampscope::record {

/// What a look is for; it comes back with the result as it was given.
struct DeviceLook {
  static constexpr std::size_t max_inputs = 4;

  enum class Kind : std::uint8_t {
    output,         ///< of an op; object = site
    gradient,       ///< as the optimizer is to see it; object = parameter
    inverse_scale,  ///< that the gradients which follow were multiplied by
    loss,           ///< a backward pass begins with it
    scale_before,   ///< the three numbers of GradScaler.update and its counter, in this order
    tracker_before,
    found_inf,
    scale_after,
    tracker_after,
  };

  Kind kind = Kind::output;
  bool numerics = false;              ///< output: its statistics are recorded, not only whether it is finite
  bool divide = false;                ///< gradient: it still carries the loss scale
  bool scaled = false;                ///< loss: it has been multiplied by the loss scale
  bool unseen_input = false;          ///< output: an input was not looked at
  bool without_float_inputs = false;  ///< output: of an op that takes no floating tensor
  std::uint8_t inputs = 0;            ///< output: how many of `input_looks` are known
  bool backward_half = false;         ///< output: made in fp16 by a backward pass
  trace::DType dtype = trace::DType::unknown;
  trace::DType compute_dtype = trace::DType::unknown;   ///< output: of the op
  trace::DType backward_dtype = trace::DType::unknown;  ///< gradient
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;
  std::int64_t object = trace::none;
  double scale = 1;
  double weight = 1;
  std::uint64_t number = 0;  ///< given by the ring: looks are numbered from 1 in the order they are asked for
  std::array<std::uint64_t, max_inputs> input_looks{};     ///< output: numbers of the looks at the op's inputs
  std::array<std::int16_t, max_inputs> input_arguments{};  ///< output: which arguments of the op those are
};

/// Of one device. All functions may be called from any thread; none throws, waits for the device or allocates.
class DeviceRing {
 public:
  explicit DeviceRing(stats::StatisticsDevice& device);

  /// Looks at `tensors`, one of `looks` for each, in as few launches as may be. Refused as a whole while the stream
  /// captures a graph. Sets `looks[i].number`; 0 for one that was refused.
  void look(void* stream, std::span<const stats::TensorView> tensors, std::span<DeviceLook> looks) noexcept;

  /// Sends for the results of all looks so far: at the end of a step. A slot that is full is sent for anyway.
  void send_for() noexcept;

  /// Calls `take(look, stats)` for every result that has arrived, in the order the looks were asked for on a stream.
  /// Does nothing while another thread is doing it.
  template <typename Take>
  void collect(Take&& take) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock() || abandoned()) return;
    while (const Entry* entry = next()) {
      take(entry->look, *scratch_);
    }
  }

  /// At the end of the run: collects until nothing is outstanding or `patience_ns` have passed; what is still missing
  /// then is counted as lost.
  template <typename Take>
  void finish(std::int64_t patience_ns, Take&& take) noexcept {
    send_for();
    for (std::int64_t waited = 0;; waited += pause()) {
      collect(take);
      if (outstanding() == 0 || waited >= patience_ns || abandoned()) break;
    }
    give_up_outstanding();
  }

  /// In a forked child, where the device cannot be used: every later call does nothing. Takes no lock.
  void abandon() noexcept { abandoned_.store(true, std::memory_order_release); }

  [[nodiscard]] std::int64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t captured() const noexcept { return captured_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t outstanding() const noexcept { return outstanding_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    DeviceLook look;
    std::int64_t count = 0;
    int row = 0;
  };
  enum class State : std::uint8_t { free, filling, sent_for };
  struct Slot {
    State state = State::free;
    void* stream = nullptr;
    int rows = 0;
    int entries = 0;
    int taken = 0;  ///< entries that have been given out
    std::unique_ptr<Entry[]> entry;
  };

  [[nodiscard]] bool abandoned() const noexcept { return abandoned_.load(std::memory_order_acquire); }
  int slot_for(void* stream, int rows) noexcept;
  bool send(int index) noexcept;
  /// The next result that is here, its statistics in scratch_; null when there is none.
  const Entry* next() noexcept;
  void release(int index) noexcept;
  void give_up_outstanding() noexcept;
  static std::int64_t pause() noexcept;

  stats::StatisticsDevice& device_;
  std::mutex mutex_;
  std::array<Slot, stats::StatisticsDevice::slots> slots_;
  std::array<int, stats::StatisticsDevice::slots> waiting_{};  ///< slots sent for, oldest first
  int waiting_count_ = 0;
  std::uint64_t numbers_ = 0;
  std::unique_ptr<stats::FlatStats> scratch_ = std::make_unique<stats::FlatStats>();
  std::array<stats::TensorView, stats::StatisticsDevice::max_batch> batch_;
  std::atomic<bool> abandoned_{false};
  std::atomic<std::int64_t> refused_{0};
  std::atomic<std::int64_t> captured_{0};
  std::atomic<std::int64_t> lost_{0};
  std::atomic<std::int64_t> outstanding_{0};
};

}  // namespace ampscope::record
