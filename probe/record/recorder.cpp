#include "probe/record/recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "probe/record/output_path.h"
#include "probe/record/series.h"
#include "probe/record/write_sample.h"
#include "probe/stats/rounding_error.h"
#include "trace/series.h"

namespace ampscope::record {
namespace {

constexpr std::int64_t second = 1'000'000'000;

/// Of a FlatStats, what travels: the scalars and the counts of the exponents that occur.
struct StatsHeader {
  std::uint64_t count, nan, positive_infinity, negative_infinity, zero, subnormal;
  double min, max, absmax, sum_squares;
  std::int32_t first;
  std::int32_t length;
};

StatsHeader header_of(const stats::FlatStats& s) noexcept {
  StatsHeader h{s.count,
                s.nan,
                s.positive_infinity,
                s.negative_infinity,
                s.zero,
                s.subnormal,
                s.min,
                s.max,
                s.absmax,
                s.sum_squares,
                0,
                0};
  if (s.lowest <= s.highest) {
    h.first = s.lowest;
    h.length = s.highest - s.lowest + 1;
  }
  return h;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span<const T>(&value, 1));
}

std::span<const std::byte> counts_of(const stats::FlatStats& s, const StatsHeader& h) noexcept {
  if (h.length == 0) return {};
  return std::as_bytes(std::span<const std::uint64_t>(&s.counts[h.first - stats::FlatStats::lowest_exponent],
                                                      static_cast<std::size_t>(h.length)));
}

template <typename T>
T take(std::span<const std::byte>& payload) {
  T value;
  std::memcpy(&value, payload.data(), sizeof value);
  payload = payload.subspan(sizeof value);
  return value;
}

trace::TensorStats take_stats(std::span<const std::byte>& payload) {
  const auto h = take<StatsHeader>(payload);
  trace::TensorStats s;
  s.count = h.count;
  s.nan = h.nan;
  s.positive_infinity = h.positive_infinity;
  s.negative_infinity = h.negative_infinity;
  s.zero = h.zero;
  s.subnormal = h.subnormal;
  s.min = h.min;
  s.max = h.max;
  s.absmax = h.absmax;
  s.sum_squares = h.sum_squares;
  for (std::int32_t i = 0; i < h.length; ++i) {
    const auto count = take<std::uint64_t>(payload);
    if (count) s.exponents.add(h.first + i, count);
  }
  return s;
}

struct NumericsMessage {
  std::int64_t step;
  std::int64_t site;
  double weight;
  trace::DType dtype;
};

/// Removes and returns the rows, by (step, site), up to the first step that is not finished.
template <typename Row, typename Finished>
std::vector<Row> take_finished(std::map<std::pair<std::int64_t, std::int64_t>, Row>& rows, Finished&& finished) {
  std::vector<Row> taken;
  auto row = rows.begin();
  for (; row != rows.end() && finished(row->first.first); ++row)
    taken.push_back(std::move(row->second));
  rows.erase(rows.begin(), row);
  return taken;
}

struct SeriesMessage {
  std::int64_t step;
  std::int64_t object;
  double value;
  Series name;
};

struct StepMessage {
  std::int64_t step;
  std::int64_t pattern;
};

const char* series_name(Series name) {
  if (name == backward_absmax) return trace::backward_absmax_series;
  switch (name) {
    case Series::loss:
      return "loss";
    case Series::gradient_norm:
      return "grad_norm";
    case Series::learning_rate:
      return "lr";
    case Series::step_time:
      return "step_time_ns";
  }
  return "unknown";
}

/// The window of steps that `step` lies in: first step and the one behind its last. Windows follow one another from the
/// start of the run, so two steps of one window always meet in it.
struct StepWindow {
  std::int64_t first;
  std::int64_t end;
};

StepWindow window_of(std::int64_t step) {
  StepWindow window{0, window_length(0)};
  while (step >= window.end)
    window = {window.end, window.end + window_length(window.end)};
  return window;
}

/// Whether a site's totals have moved enough since they were written to be written again: by a sixteenth, so that a run
/// ten times as long writes them a few times more.
bool worth_writing(std::int64_t calls, std::int64_t written) {
  return calls - written > written / 16;
}

/// Bytes of a trace after which observation ends. The rest of the limit is for what is on its way by then.
std::uint64_t most_bytes(const Options& options) {
  return options.max_bytes > 0 ? static_cast<std::uint64_t>(options.max_bytes - options.max_bytes / 16)
                               : std::numeric_limits<std::uint64_t>::max();
}

/// Writes rows in pieces as long as the trace is below its limit.
template <typename Row>
void add_below(std::uint64_t most, trace::Writer& writer, const std::vector<Row>& rows) {
  constexpr std::size_t piece = 64;
  const std::uint64_t frame = std::clamp<std::uint64_t>(most / 64, 4 << 10, 128 << 10);
  for (std::size_t at = 0; at < rows.size() && writer.bytes_written() <= most; at += piece) {
    writer.add(std::span<const Row>(rows).subspan(at, std::min(piece, rows.size() - at)));
    if (writer.bytes_pending() > frame && writer.bytes_written() + writer.bytes_pending() > most) writer.flush();
  }
}

// Per-step rows that a run with endless non-finite gradients would otherwise write without end.
constexpr std::int64_t max_nonfinite_gradient_rows = 200'000;

}  // namespace

std::int64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second + now.tv_nsec;
}

void notify(const Options& options, const char* level, const std::string& message) noexcept {
  try {
    if (!options.status_file.empty()) {
      // `ampscope run` prints what stands in this file once; several processes may append to it.
      const std::string line = nlohmann::json{{"level", level}, {"message", message}}.dump(
                                   -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                               "\n";
      const int fd = ::open(options.status_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
      if (fd >= 0) {
        const bool written = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
        ::close(fd);
        if (written) return;
      }
    }
    const std::string line = "ampscope: " + message + "\n";
    [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (...) {  // Out of memory: the run matters more than the notice.
  }
}

Recorder::Recorder(Options options) : options_(std::move(options)) {}

bool Recorder::start(const trace::RunInfo& run) {
  // Never overwrites: `ampscope run --force` has removed older traces before the program started, so a file that is
  // there now belongs to another process of this run.
  std::string path = preferred_path(options_);
  if (!writer_.open(path, trace::Writer::Existing::refuse)) {
    struct stat info{};
    const bool taken = ::stat(path.c_str(), &info) == 0;
    const std::string reason = writer_.error();
    path = fallback_path(options_);
    if (!taken || !writer_.open(path, trace::Writer::Existing::refuse)) {
      switch_off(taken ? writer_.error() : reason, 0);
      return false;
    }
  }
  {
    std::lock_guard lock(definitions_mutex_);
    path_ = path;
  }
  writer_.add(run);
  // The header must be there at once: a process that dies in its first step has still been seen to train.
  if (!writer_.flush()) {
    switch_off(writer_.error(), 0);
    return false;
  }
  first_step_time_ns_.store(monotonic_ns(), std::memory_order_relaxed);
  last_flush_ns_ = monotonic_ns();

  // The program's signal handlers must run on the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    thread_ = std::thread([this] { run_writer(); });
  } catch (const std::exception& error) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    switch_off(std::string("the writer thread could not be started: ") + error.what(), 0);
    return false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  started_.store(true, std::memory_order_release);
  return true;
}

void Recorder::finish(const trace::RunEnd& end) {
  if (!started_.load(std::memory_order_acquire) || stopping_.exchange(true)) return;
  if (thread_.joinable()) thread_.join();
  if (!writer_.error().empty()) return;
  if (!failed()) {
    drain_lanes();
    write_pending(true);
  }
  writer_.add(end);
  if (!writer_.close()) fail(writer_.error());
}

void Recorder::gradient(FastLane& lane, const GradientSample& sample, const stats::FlatStats& stats) noexcept {
  const StatsHeader header = header_of(stats);
  const std::span<const std::byte> parts[] = {bytes_of(sample), bytes_of(header), counts_of(stats, header)};
  lane.push(MessageKind::gradient, parts);
}

void Recorder::numerics(FastLane& lane, std::int64_t step, std::int64_t site, double weight, trace::DType dtype,
                        const stats::FlatStats& stats) noexcept {
  const NumericsMessage message{step, site, weight, dtype};
  const StatsHeader header = header_of(stats);
  const std::span<const std::byte> parts[] = {bytes_of(message), bytes_of(header), counts_of(stats, header)};
  lane.push(MessageKind::numerics, parts);
}

void Recorder::scaler_update(FastLane& lane, const trace::ScalerUpdate& update) noexcept {
  const std::span<const std::byte> parts[] = {bytes_of(update)};
  lane.push(MessageKind::scaler_update, parts);
}

void Recorder::series(FastLane& lane, Series name, std::int64_t object, std::int64_t step, double value) noexcept {
  const SeriesMessage message{step, object, value, name};
  const std::span<const std::byte> parts[] = {bytes_of(message)};
  lane.push(MessageKind::series, parts);
}

void Recorder::step_finished(FastLane& lane, std::int64_t step, std::int64_t pattern) noexcept {
  const StepMessage message{step, pattern};
  const std::span<const std::byte> parts[] = {bytes_of(message)};
  lane.push(MessageKind::step, parts);
}

void Recorder::write(FastLane& lane, const trace::WriteSample& sample) noexcept {
  const std::span<const std::byte> parts[] = {bytes_of(sample)};
  lane.push(MessageKind::write, parts);
}

void Recorder::nonfinite_gradient(FastLane& lane, const trace::NonfiniteGradient& row) noexcept {
  const std::span<const std::byte> parts[] = {bytes_of(row)};
  lane.push(MessageKind::nonfinite_gradient, parts);
}

void Recorder::rounding(FastLane& lane, const trace::RoundingErrors& row) noexcept {
  const std::span<const std::byte> parts[] = {bytes_of(row)};
  lane.push(MessageKind::rounding, parts);
}

void Recorder::define(Definition definition) noexcept {
  try {
    std::lock_guard lock(definitions_mutex_);
    definitions_.push_back(std::move(definition));
  } catch (...) {
    fail("out of memory");
  }
}

void Recorder::hidden_region(const trace::HiddenRegion& region) noexcept {
  try {
    std::lock_guard lock(definitions_mutex_);
    trace::HiddenRegion& total = hidden_[region.kind + '\0' + region.name];
    if (total.calls == 0) {
      total = region;
    } else {
      total.calls += region.calls;
      total.time_ns += region.time_ns;
    }
  } catch (...) {
    fail("out of memory");
  }
}

void Recorder::budget_is(const BudgetState& state) noexcept {
  const std::lock_guard lock(budget_mutex_);
  budget_state_ = state;
}

FastLane* Recorder::acquire_lane() noexcept {
  try {
    std::lock_guard lock(lanes_mutex_);
    if (!free_lanes_.empty()) {
      FastLane* lane = free_lanes_.back();
      free_lanes_.pop_back();
      return lane;
    }
    // The first thread does most of the work in nearly every program.
    const auto bytes = static_cast<std::size_t>(lanes_.empty() ? options_.ring_bytes : options_.ring_bytes / 4);
    lanes_.push_back(std::make_unique<FastLane>(bytes));
    return lanes_.back().get();
  } catch (...) {
    fail("out of memory");
    return nullptr;
  }
}

void Recorder::release_lane(FastLane* lane) noexcept {
  if (!lane) return;
  try {
    std::lock_guard lock(lanes_mutex_);
    free_lanes_.push_back(lane);
  } catch (...) {  // The lane is lost to later threads, nothing else.
  }
}

void Recorder::switch_off(const std::string& reason, std::int64_t step) noexcept {
  try {
    {
      std::lock_guard lock(definitions_mutex_);
      if (!switched_off_because_.empty()) return;
      switched_off_because_ = reason;
      switched_off_at_step_ = step;
    }
    failed_.store(true, std::memory_order_release);
    notify(options_, "error", "observation stopped at step " + std::to_string(step) + ", the run goes on: " + reason);
  } catch (...) {
    failed_.store(true, std::memory_order_release);
  }
}

void Recorder::fail(const std::string& reason) noexcept {
  switch_off(reason, steps_.load(std::memory_order_relaxed));
}

std::string Recorder::path() const {
  std::lock_guard lock(definitions_mutex_);
  return path_;
}

void Recorder::abandon() noexcept {
  writer_.abandon();
  failed_.store(true, std::memory_order_release);
  // The thread does not exist in the child; joining or destroying its handle would terminate the process.
  if (thread_.joinable()) thread_.detach();
  started_.store(false, std::memory_order_release);
}

void Recorder::run_writer() noexcept {
  pthread_setname_np(pthread_self(), "ampscope-writer");
  std::int64_t pause_ns = 2'000'000;
  while (!stopping_.load(std::memory_order_acquire) && !failed()) {
    timespec pause{0, static_cast<long>(pause_ns)};
    nanosleep(&pause, nullptr);
    try {
      const bool busy = drain_lanes();
      // Sleep less while much arrives, so that queues do not fill; up to 40 ms when there is little to do.
      pause_ns =
          busy ? std::max<std::int64_t>(pause_ns / 2, 500'000) : std::min<std::int64_t>(pause_ns * 2, 40'000'000);
      const std::int64_t now = monotonic_ns();
      if (should_flush(now)) {
        write_pending(false);
        last_flush_ns_ = now;
      }
      timespec cpu{};
      if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0) {
        writer_cpu_ns_.store(cpu.tv_sec * second + cpu.tv_nsec, std::memory_order_relaxed);
      }
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }
  // Observation has ended early: the trace says why, unless it is the trace that cannot be written.
  if (failed() && writer_.error().empty()) {
    try {
      writer_.add(status());
      writer_.flush();
    } catch (...) {  // Out of memory; the notice on stderr has told it.
    }
  }
}

bool Recorder::drain_lanes() {
  std::vector<FastLane*> lanes;
  {
    std::lock_guard lock(lanes_mutex_);
    for (const auto& lane : lanes_)
      lanes.push_back(lane.get());
  }
  bool crowded = false;
  for (FastLane* lane : lanes) {
    crowded |= lane->crowded();
    lane->drain([this](MessageKind kind, std::span<const std::byte> payload) { handle(kind, payload); });
  }
  return crowded;
}

void Recorder::handle(MessageKind kind, std::span<const std::byte> payload) {
  switch (kind) {
    case MessageKind::padding:
      break;
    case MessageKind::gradient: {
      const auto sample = take<GradientSample>(payload);
      gradients_.add(sample, take_stats(payload));
      break;
    }
    case MessageKind::numerics: {
      const auto message = take<NumericsMessage>(payload);
      // Every step is looked at: one row for a window of them, or the trace would grow with the run.
      const std::int64_t step = options_.level >= trace::Level::full ? window_of(message.step).first : message.step;
      trace::SiteNumerics& row = numerics_[{step, message.site}];
      row.site = message.site;
      row.step = step;
      row.weight = message.weight;
      row.dtype = message.dtype;
      row.stats.merge(take_stats(payload));
      break;
    }
    case MessageKind::scaler_update:
      scaler_updates_.push_back(take<trace::ScalerUpdate>(payload));
      break;
    case MessageKind::series: {
      const auto message = take<SeriesMessage>(payload);
      series_.add(series_name(message.name), message.object, message.step, message.value);
      break;
    }
    case MessageKind::step: {
      const auto message = take<StepMessage>(payload);
      if (!step_runs_.empty() && step_runs_.back().pattern == message.pattern &&
          step_runs_.back().first_step + step_runs_.back().count == message.step) {
        ++step_runs_.back().count;
      } else {
        step_runs_.push_back({message.step, 1, message.pattern});
      }
      steps_.store(message.step + 1, std::memory_order_relaxed);
      break;
    }
    case MessageKind::nonfinite_gradient:
      if (nonfinite_gradients_written_++ < max_nonfinite_gradient_rows) {
        nonfinite_gradients_.push_back(take<trace::NonfiniteGradient>(payload));
      }
      break;
    case MessageKind::rounding: {
      const auto message = take<trace::RoundingErrors>(payload);
      const auto [row, fresh] = rounding_errors_.try_emplace({message.step, message.site}, message);
      if (!fresh) stats::merge(row->second, message);
      break;
    }
    case MessageKind::write: {
      const auto sample = take<trace::WriteSample>(payload);
      const auto [row, is_new] = writes_.try_emplace({sample.step, sample.site, sample.parameter, sample.kind}, sample);
      if (!is_new) merge(row->second, sample);
      break;
    }
  }
}

bool Recorder::should_flush(std::int64_t now_ns) const noexcept {
  const std::int64_t since = now_ns - last_flush_ns_;
  const std::int64_t running = now_ns - first_step_time_ns_.load(std::memory_order_relaxed);
  // A run that has gone bad for good asks in every step; a frame for each would add up.
  if (urgent_.load(std::memory_order_acquire)) return since >= std::min<std::int64_t>(running / 200, second);
  // What a killed process loses: at most a twentieth of its time so far, never more than 30 s.
  return since >= std::clamp<std::int64_t>(running / 20, second / 4, 30 * second);
}

void Recorder::write_pending(bool everything) {
  urgent_.store(false, std::memory_order_release);
  std::vector<Definition> definitions;
  std::map<std::string, trace::HiddenRegion> hidden;
  {
    std::lock_guard lock(definitions_mutex_);
    definitions.swap(definitions_);
    hidden = hidden_;
  }
  const std::int64_t steps = steps_.load(std::memory_order_relaxed);
  for (const Definition& definition : definitions) {
    if (const auto* site = std::get_if<trace::Site>(&definition)) known_sites_ = std::max(known_sites_, site->id + 1);
    std::visit([this](const auto& record) { writer_.add(record); }, definition);
  }
  for (const auto& [key, region] : hidden)
    writer_.add(region);

  writer_.add(std::span<const trace::StepRun>(step_runs_));
  step_runs_.clear();
  writer_.add(std::span<const trace::ScalerUpdate>(scaler_updates_));
  scaler_updates_.clear();
  const std::uint64_t most = most_bytes(options_);
  add_below(most, writer_, nonfinite_gradients_);
  nonfinite_gradients_.clear();
  add_below(most, writer_, gradients_.take(steps, everything));
  add_below(most, writer_, series_.take(steps, everything));

  // Steps before this one are over, and all that their looks at a device have found has arrived.
  const std::int64_t over =
      everything ? std::numeric_limits<std::int64_t>::max() : steps - late_steps_.load(std::memory_order_relaxed);
  const bool windows = options_.level >= trace::Level::full;
  add_below(most, writer_, take_finished(numerics_, [&](std::int64_t step) {
              return (windows ? window_of(step).end : step + 1) <= over;
            }));
  add_below(most, writer_, take_finished(rounding_errors_, [&](std::int64_t step) { return step < over; }));

  std::vector<trace::WriteSample> writes;
  for (auto row = writes_.begin(); row != writes_.end();) {
    if (!everything && std::get<0>(row->first) >= steps) break;
    writes.push_back(row->second);
    row = writes_.erase(row);
  }
  writer_.add(std::span<const trace::WriteSample>(writes));

  const bool late = late_steps_.load(std::memory_order_relaxed) > 0;
  std::vector<trace::SiteTotals> totals;
  written_calls_.resize(static_cast<std::size_t>(known_sites_), 0);
  for (std::int64_t site = 0; site < known_sites_; ++site) {
    const SiteCounters* counters = counters_.find(site);
    if (!counters) continue;
    const trace::SiteTotals row = counters->totals(site);
    std::int64_t& written = written_calls_[static_cast<std::size_t>(site)];
    // What late results have added shows in no call.
    if (everything ? row.calls == written && !late : !worth_writing(row.calls, written)) continue;
    written = row.calls;
    totals.push_back(row);
  }
  writer_.add(std::span<const trace::SiteTotals>(totals));
  writer_.add(status());
  if (!writer_.flush()) {
    fail(writer_.error());
    return;
  }
  if (!everything && writer_.bytes_written() > most && !size_limit_told_) {
    size_limit_told_ = true;
    fail("the trace has reached its size limit of " + std::to_string(options_.max_bytes >> 20) +
         " MiB (--max-size raises it)");
  }
}

trace::RecorderStatus Recorder::status() const {
  trace::RecorderStatus status;
  status.steps = steps_.load(std::memory_order_relaxed);
  status.events_seen = events_seen_.load(std::memory_order_relaxed);
  status.events_dropped = lost_looks_.load(std::memory_order_relaxed);
  status.sites_dropped = sites_dropped_.load(std::memory_order_relaxed);
  status.elapsed_ns = monotonic_ns() - first_step_time_ns_.load(std::memory_order_relaxed);
  // One ordinary step in sixteen is timed and stands for the others.
  const std::int64_t timed = timed_steps_.load(std::memory_order_relaxed);
  const double scale =
      timed > 0 ? static_cast<double>(ordinary_steps_.load(std::memory_order_relaxed)) / static_cast<double>(timed)
                : 1.0;
  status.own_time_ns =
      own_time_full_ns_.load(std::memory_order_relaxed) +
      static_cast<std::int64_t>(static_cast<double>(own_time_ordinary_ns_.load(std::memory_order_relaxed)) * scale);
  if (options_.budget_percent > 0) {
    const std::lock_guard lock(budget_mutex_);
    status.operator_steps = budget_state_.operator_steps;
    status.gradient_steps = budget_state_.gradient_steps;
    status.full_steps = budget_state_.full_steps;
    status.cost = budget_state_.cost;
    status.cost_low = budget_state_.cost_low;
    status.cost_high = budget_state_.cost_high;
    if (status.cost >= 0) {
      status.own_time_ns =
          static_cast<std::int64_t>(static_cast<double>(status.elapsed_ns) * status.cost / (1 + status.cost));
    }
  } else {
    status.operator_steps = status.steps;
    if (options_.level >= trace::Level::grads) status.gradient_steps = status.steps;
    status.full_steps = std::min(status.steps, full_steps_.load(std::memory_order_relaxed));
  }
  status.trace_bytes = static_cast<std::int64_t>(writer_.bytes_written());
  {
    std::lock_guard lock(lanes_mutex_);
    for (const auto& lane : lanes_)
      status.events_dropped += static_cast<std::int64_t>(lane->dropped());
  }
  std::lock_guard lock(definitions_mutex_);
  status.switched_off_because = switched_off_because_;
  status.switched_off_at_step = switched_off_at_step_;
  return status;
}

}  // namespace ampscope::record
