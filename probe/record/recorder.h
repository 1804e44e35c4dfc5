// The recording half of a session: takes what observation hands over, aggregates it on a thread of its own and writes
// the trace. Knows nothing of torch.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

#include "probe/record/fast_lane.h"
#include "probe/record/options.h"
#include "probe/record/site_counters.h"
#include "probe/record/windows.h"
#include "probe/stats/flat_stats.h"
#include "trace/model.h"
#include "trace/writer.h"

namespace ampscope::record {

/// Names of series, so that a message carries a number.
enum class Series : std::uint32_t { loss, gradient_norm, learning_rate, step_time };

/// Definitions and rare events: complicated, so they take a lock of our own (which no user code can hold) and allocate.
using Definition =
    std::variant<trace::Site, trace::Parameter, trace::Optimizer, trace::Scaler, trace::Schedule, trace::StepPattern,
                 trace::NonfiniteEvent, trace::FlightRecord, trace::HiddenRegion, trace::RoundTrip>;

/// What is known of our own time in a step.
enum class StepCost : std::uint8_t { untimed, timed, full };

class Recorder {
 public:
  explicit Recorder(Options options);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder() = default;

  /// Makes the trace file and starts the writer thread. Called at the first backward pass. False: see failure().
  bool start(const trace::RunInfo& run);
  /// Completes the trace: drains everything, writes `end`, joins the thread. Safe to call more than once.
  void finish(const trace::RunEnd& end);
  [[nodiscard]] bool started() const noexcept { return started_.load(std::memory_order_acquire); }

  // --- From training threads, steady path: no lock, no allocation. ---
  /// `lane` is the calling thread's own.
  void gradient(FastLane& lane, const GradientSample& sample, const stats::FlatStats& stats) noexcept;
  void numerics(FastLane& lane, std::int64_t step, std::int64_t site, double weight, trace::DType dtype,
                const stats::FlatStats& stats) noexcept;
  void scaler_update(FastLane& lane, const trace::ScalerUpdate& update) noexcept;
  void series(FastLane& lane, Series name, std::int64_t object, std::int64_t step, double value) noexcept;
  void step_finished(FastLane& lane, std::int64_t step, std::int64_t pattern) noexcept;
  void nonfinite_gradient(FastLane& lane, const trace::NonfiniteGradient& row) noexcept;
  void rounding(FastLane& lane, const trace::RoundingErrors& row) noexcept;
  void write(FastLane& lane, const trace::WriteSample& sample) noexcept;

  // --- From training threads, rare. ---
  void define(Definition definition) noexcept;
  /// A queue for a thread that is seen for the first time, or one that an ended thread has given back.
  FastLane* acquire_lane() noexcept;
  void release_lane(FastLane* lane) noexcept;
  /// Asks for a flush soon: something happened that must survive the death of the process.
  void urgent() noexcept { urgent_.store(true, std::memory_order_release); }
  void hidden_region(const trace::HiddenRegion& region) noexcept;

  /// Records why observation ended early, once; also told on stderr and to `ampscope run`.
  void switch_off(const std::string& reason, std::int64_t step) noexcept;
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  SiteCounterTable& counters() noexcept { return counters_; }
  void count_events(std::int64_t events) noexcept { events_seen_.fetch_add(events, std::memory_order_relaxed); }
  /// Values of devices are looked at: their rows arrive some steps late.
  void results_come_late() noexcept { late_steps_.store(4, std::memory_order_relaxed); }
  /// Looks at values of devices that gave no result, in all so far.
  void count_lost_looks(std::int64_t looks) noexcept { lost_looks_.store(looks, std::memory_order_relaxed); }
  void count_dropped_site() noexcept { sites_dropped_.fetch_add(1, std::memory_order_relaxed); }
  /// Time spent in our callbacks: in timed ordinary steps, and in steps with full numerics (which are all timed).
  void count_own_time(std::int64_t ordinary_ns, std::int64_t full_ns) noexcept {
    own_time_ordinary_ns_.fetch_add(ordinary_ns, std::memory_order_relaxed);
    own_time_full_ns_.fetch_add(full_ns, std::memory_order_relaxed);
  }
  /// What a run with a budget has looked at so far, and what that costs by comparing steps.
  struct BudgetState {
    std::int64_t operator_steps = 0;
    std::int64_t gradient_steps = 0;
    std::int64_t full_steps = 0;
    double cost = -1;  ///< less than 0: not known
    double cost_low = -1;
    double cost_high = -1;
  };
  void budget_is(const BudgetState& state) noexcept;
  void count_step(StepCost cost) noexcept {
    if (cost == StepCost::timed) timed_steps_.fetch_add(1, std::memory_order_relaxed);
    if (cost == StepCost::full) full_steps_.fetch_add(1, std::memory_order_relaxed);
    if (cost != StepCost::full) ordinary_steps_.fetch_add(1, std::memory_order_relaxed);
  }

  /// Processor time that the writer thread has taken so far.
  [[nodiscard]] std::int64_t writer_cpu_ns() const noexcept { return writer_cpu_ns_.load(std::memory_order_relaxed); }

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] std::string path() const;
  /// In a forked child: the file and the thread belong to the parent.
  void abandon() noexcept;

 private:
  void run_writer() noexcept;
  /// True when a queue was more than half full.
  bool drain_lanes();
  void handle(MessageKind kind, std::span<const std::byte> payload);
  void write_pending(bool everything);
  void fail(const std::string& reason) noexcept;
  bool should_flush(std::int64_t now_ns) const noexcept;
  trace::RecorderStatus status() const;

  Options options_;
  trace::Writer writer_;
  std::thread thread_;
  std::atomic<bool> started_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> urgent_{false};
  std::atomic<bool> failed_{false};

  mutable std::mutex definitions_mutex_;
  std::vector<Definition> definitions_;
  std::map<std::string, trace::HiddenRegion> hidden_;
  std::string switched_off_because_;
  std::int64_t switched_off_at_step_ = trace::none;
  std::string path_;

  mutable std::mutex budget_mutex_;
  BudgetState budget_state_;  ///< guarded by budget_mutex_

  mutable std::mutex lanes_mutex_;
  std::vector<std::unique_ptr<FastLane>> lanes_;
  std::vector<FastLane*> free_lanes_;

  SiteCounterTable counters_;
  std::atomic<std::int64_t> events_seen_{0};
  std::atomic<std::int64_t> sites_dropped_{0};
  std::atomic<std::int64_t> late_steps_{0};
  std::atomic<std::int64_t> lost_looks_{0};
  std::atomic<std::int64_t> own_time_ordinary_ns_{0};
  std::atomic<std::int64_t> own_time_full_ns_{0};
  std::atomic<std::int64_t> full_steps_{0};
  std::atomic<std::int64_t> timed_steps_{0};
  std::atomic<std::int64_t> ordinary_steps_{0};
  std::atomic<std::int64_t> steps_{0};
  std::atomic<std::int64_t> first_step_time_ns_{0};

  // Of the writer thread alone.
  GradientWindows gradients_;
  SeriesWindows series_;
  std::map<std::pair<std::int64_t, std::int64_t>, trace::SiteNumerics> numerics_;           ///< by (step, site)
  std::map<std::pair<std::int64_t, std::int64_t>, trace::RoundingErrors> rounding_errors_;  ///< by (step, site)
  /// By step, site, parameter and kind.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, trace::WriteKind>, trace::WriteSample> writes_;
  std::vector<trace::ScalerUpdate> scaler_updates_;
  std::vector<trace::NonfiniteGradient> nonfinite_gradients_;
  std::vector<trace::StepRun> step_runs_;
  std::vector<std::int64_t> written_calls_;  ///< by site: calls in the totals last written
  std::int64_t known_sites_ = 0;
  std::int64_t nonfinite_gradients_written_ = 0;
  std::int64_t last_flush_ns_ = 0;
  std::atomic<std::int64_t> writer_cpu_ns_{0};  ///< processor time of the writer thread so far
  bool size_limit_told_ = false;
};

/// One line on stderr and one JSON object in the status file of `ampscope run`. Never throws.
void notify(const Options& options, const char* level, const std::string& message) noexcept;

[[nodiscard]] std::int64_t monotonic_ns() noexcept;

}  // namespace ampscope::record
