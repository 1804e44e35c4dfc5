// Running totals of op sites: written by the training thread that owns the site, read by the writer thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "trace/model.h"

namespace ampscope::record {

/// A number with one writing thread; the relaxed load and store compile to plain moves.
template <typename T>
class SingleWriter {
 public:
  void add(T amount) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] T get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<T> value_{};
};

struct SiteCounters {
  SingleWriter<std::int64_t> calls;
  SingleWriter<std::int64_t> steps;
  SingleWriter<std::int64_t> first_step_plus_one;  ///< 0: never called
  SingleWriter<std::int64_t> last_step;
  SingleWriter<std::int64_t> elements;
  SingleWriter<std::int64_t> bytes;
  SingleWriter<std::int64_t> timed_calls;
  SingleWriter<std::int64_t> timed_ns;
  SingleWriter<std::int64_t> checked_calls;
  SingleWriter<std::int64_t> nonfinite_calls;
  SingleWriter<std::int64_t> nonfinite_steps;
  SingleWriter<std::int64_t> first_nonfinite_step_plus_one;
  SingleWriter<std::int64_t> last_nonfinite_step;
  SingleWriter<float> absmax;
  SingleWriter<std::int64_t> failed_calls;
  SingleWriter<std::int64_t> first_failed_step_plus_one;

  void count_call(std::int64_t step, std::int64_t output_elements, std::int64_t output_bytes) noexcept {
    calls.add(1);
    elements.add(output_elements);
    bytes.add(output_bytes);
    if (first_step_plus_one.get() == 0) {
      first_step_plus_one.set(step + 1);
      steps.set(1);
    } else if (last_step.get() != step) {
      steps.add(1);
    }
    last_step.set(step);
  }

  void count_nonfinite(std::int64_t step) noexcept {
    nonfinite_calls.add(1);
    if (first_nonfinite_step_plus_one.get() == 0) {
      first_nonfinite_step_plus_one.set(step + 1);
      nonfinite_steps.set(1);
    } else if (last_nonfinite_step.get() != step) {
      nonfinite_steps.add(1);
    }
    last_nonfinite_step.set(step);
  }

  void count_failure(std::int64_t step) noexcept {
    failed_calls.add(1);
    if (first_failed_step_plus_one.get() == 0) first_failed_step_plus_one.set(step + 1);
  }

  [[nodiscard]] trace::SiteTotals totals(std::int64_t site) const noexcept {
    trace::SiteTotals row;
    row.site = site;
    row.calls = calls.get();
    row.steps = steps.get();
    row.first_step = first_step_plus_one.get() - 1;
    row.last_step = row.calls ? last_step.get() : trace::none;
    row.elements = elements.get();
    row.bytes = bytes.get();
    const std::int64_t timed = timed_calls.get();
    // Not every call is timed; the total is the mean of those that were times all calls.
    row.time_ns = timed ? static_cast<std::int64_t>(static_cast<double>(timed_ns.get()) / static_cast<double>(timed) *
                                                    static_cast<double>(row.calls))
                        : 0;
    row.checked_calls = checked_calls.get();
    row.nonfinite_calls = nonfinite_calls.get();
    row.nonfinite_steps = nonfinite_steps.get();
    row.first_nonfinite_step = first_nonfinite_step_plus_one.get() - 1;
    row.last_nonfinite_step = row.nonfinite_calls ? last_nonfinite_step.get() : trace::none;
    row.absmax = static_cast<double>(absmax.get());
    row.failed_calls = failed_calls.get();
    row.first_failed_step = first_failed_step_plus_one.get() - 1;
    return row;
  }
};

/// Grows without moving what is there: a chunk's address is published once and stays.
class SiteCounterTable {
 public:
  static constexpr std::int64_t chunk_size = 1024;
  static constexpr std::int64_t max_sites = 64 * chunk_size;

  SiteCounterTable() = default;
  ~SiteCounterTable() {
    for (const auto& chunk : chunks_)
      delete[] chunk.load(std::memory_order_acquire);
  }
  SiteCounterTable(const SiteCounterTable&) = delete;
  SiteCounterTable& operator=(const SiteCounterTable&) = delete;

  /// For the thread that creates the site; threads may create others meanwhile. `site` < max_sites.
  SiteCounters& create(std::int64_t site) {
    auto& slot = chunks_[static_cast<std::size_t>(site / chunk_size)];
    SiteCounters* chunk = slot.load(std::memory_order_acquire);
    if (!chunk) {
      auto made = std::make_unique<SiteCounters[]>(chunk_size);
      // Who comes second takes the first one's, or the first one's counts would be lost.
      if (slot.compare_exchange_strong(chunk, made.get(), std::memory_order_acq_rel)) chunk = made.release();
    }
    return chunk[site % chunk_size];
  }

  [[nodiscard]] const SiteCounters* find(std::int64_t site) const noexcept {
    const SiteCounters* chunk = chunks_[static_cast<std::size_t>(site / chunk_size)].load(std::memory_order_acquire);
    return chunk ? &chunk[site % chunk_size] : nullptr;
  }

 private:
  std::array<std::atomic<SiteCounters*>, max_sites / chunk_size> chunks_{};
};

}  // namespace ampscope::record
