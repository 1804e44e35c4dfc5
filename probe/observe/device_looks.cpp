#include "probe/observe/device_looks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "probe/observe/backward_range.h"
#include "probe/observe/device_library.h"
#include "probe/observe/protocol_events.h"
#include "probe/observe/tensor_access.h"
#include "probe/record/device_ring.h"
#include "probe/record/series.h"

namespace ampscope::observe {

using record::DeviceLook;
using record::DeviceRing;

namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
// At the end of a run: what a device that still computes is given to finish.
constexpr std::int64_t patience_ns = 2'000'000'000;
// As for tensors in host memory, see nonfinite.cpp.
constexpr std::size_t max_events_a_step = 192;
constexpr std::int64_t max_events_a_run = 20'000;

/// What a look showed, for the ops that read the tensor.
struct Result {
  std::uint64_t number = 0;
  std::int64_t site = trace::none;
  trace::DType dtype = trace::DType::unknown;
  trace::TensorStats stats;  // without its histogram, so that nothing is allocated
};

/// A call of GradScaler.update whose numbers are on their way.
struct LateUpdate {
  trace::ScalerUpdate row;
  int numbers = 0;  // arrived
};

/// Views and looks of a batch that is being put together. Large, so one for each thread and kept.
struct Gathering {
  std::array<stats::TensorView, stats::StatisticsDevice::max_batch> views;
  std::array<DeviceLook, stats::StatisticsDevice::max_batch> looks;
  std::size_t count = 0;
  c10::Device device{c10::DeviceType::CPU};
};

Gathering* gathering() noexcept {
  thread_local std::unique_ptr<Gathering> mine;
  if (!mine) mine.reset(new (std::nothrow) Gathering);
  return mine.get();
}

}  // namespace

class DeviceLooks {
 public:
  explicit DeviceLooks(Session& session) : session_(session) {}

  DeviceRing* ring(c10::Device device) noexcept {
    const auto index = static_cast<std::size_t>(device.has_index() ? device.index() : 0);
    if (index >= rings_.size() || abandoned_.load(std::memory_order_relaxed)) return nullptr;
    if (opened_[index].load(std::memory_order_acquire)) return rings_[index].load(std::memory_order_relaxed);
    const std::lock_guard lock(opening_);
    if (opened_[index].load(std::memory_order_relaxed)) return rings_[index].load(std::memory_order_relaxed);
    const char* why = "";
    if (stats::StatisticsDevice* const opened = open_statistics_device(device, &why)) {
      rings_[index].store(new (std::nothrow) DeviceRing(*opened), std::memory_order_relaxed);
      session_.recorder.results_come_late();
      if (static_cast<int>(index) >= ring_count_.load(std::memory_order_relaxed)) {
        ring_count_.store(static_cast<int>(index) + 1, std::memory_order_release);
      }
    } else if (*why != '\0') {
      record::notify(session_.recorder.options(), "warning",
                     "values on " + device.str() + " are not looked at: " + why);
    }
    opened_[index].store(true, std::memory_order_release);
    return rings_[index].load(std::memory_order_relaxed);
  }

  void look(const c10::TensorImpl& tensor, DeviceLook& look) {
    DeviceRing* const to = ring(tensor.device());
    stats::TensorView view;
    if (!to || !view_of(tensor, view)) return;
    to->look(current_stream(tensor.device()), {&view, 1}, {&look, 1});
  }

  [[nodiscard]] std::uint64_t look_at(const void* address) const noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, latest_.find(address)));
  }
  void looked_at(const void* address, const DeviceLook& look) noexcept {
    if (look.number == 0) return;
    latest_.put(address, static_cast<std::int64_t>(look.number), static_cast<std::uint32_t>(look.step));
  }

  void add_update(const trace::ScalerUpdate& row) noexcept {
    const std::lock_guard lock(updates_mutex_);
    if (update_count_ < updates_.size()) updates_[update_count_++] = {row, 0};
  }

  void collect(ThreadState& thread) noexcept {
    const int count = ring_count_.load(std::memory_order_acquire);
    for (int i = 0; i < count; ++i) {
      DeviceRing* const from = rings_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
      if (!from) continue;
      from->send_for();
      from->collect([&](const DeviceLook& look, const stats::FlatStats& stats) { take(thread, look, stats); });
    }
    count_lost();
  }

  void finish(ThreadState* thread) noexcept {
    const int count = ring_count_.load(std::memory_order_acquire);
    for (int i = 0; i < count; ++i) {
      DeviceRing* const from = rings_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed);
      if (!from || !thread) continue;
      from->finish(patience_ns,
                   [&](const DeviceLook& look, const stats::FlatStats& stats) { take(*thread, look, stats); });
    }
    if (thread) {
      const std::lock_guard lock(results_mutex_);
      settle(std::numeric_limits<std::int64_t>::max());
      write_norm(*thread);
    }
    count_lost();
  }

  void abandon() noexcept {
    abandoned_.store(true, std::memory_order_relaxed);
    for (auto& ring : rings_) {
      if (DeviceRing* const left = ring.load(std::memory_order_relaxed)) left->abandon();
    }
  }

 private:
  void count_lost() noexcept {
    std::int64_t lost = 0;
    for (const auto& ring : rings_) {
      if (const DeviceRing* const from = ring.load(std::memory_order_relaxed)) lost += from->refused() + from->lost();
    }
    session_.recorder.count_lost_looks(lost);
  }

  /// A result has arrived. Called under the lock of a ring; the results of several devices meet here.
  void take(ThreadState& thread, const DeviceLook& look, const stats::FlatStats& stats) noexcept {
    try {
      const std::lock_guard lock(results_mutex_);
      settle(look.step);
      switch (look.kind) {
        case DeviceLook::Kind::output:
          return take_output(thread, look, stats);
        case DeviceLook::Kind::gradient:
          return take_gradient(thread, look, stats);
        case DeviceLook::Kind::inverse_scale:
          inverse_scale_ = stats.nonfinite() == 0 ? stats.max : 0;
          return;
        case DeviceLook::Kind::loss:
          return take_loss(thread, look, stats);
        default:
          return take_update(thread, look, stats);
      }
    } catch (...) {  // Out of memory: this one event is not told.
    }
  }

  void bad(std::int64_t step) {
    harmed_ = std::max(harmed_, step);
    step_is_bad(session_);
  }

  void take_output(ThreadState& thread, const DeviceLook& look, const stats::FlatStats& stats) {
    SiteState* const site = site_by_id(session_, look.object);
    if (!site) return;
    Result& result = results_[look.number % results_.size()];
    result.number = look.number;
    result.site = look.object;
    result.dtype = look.dtype;
    result.stats.count = stats.count;
    result.stats.nan = stats.nan;
    result.stats.positive_infinity = stats.positive_infinity;
    result.stats.negative_infinity = stats.negative_infinity;
    result.stats.zero = stats.zero;
    result.stats.subnormal = stats.subnormal;
    result.stats.min = stats.min;
    result.stats.max = stats.max;
    result.stats.absmax = stats.absmax;
    result.stats.sum_squares = stats.sum_squares;

    const bool nonfinite = stats.nonfinite() > 0;
    const auto absmax = static_cast<float>(stats.absmax);
    site->counters->checked_calls.add(1);
    if (std::isfinite(absmax) && absmax > site->counters->absmax.get()) site->counters->absmax.set(absmax);
    if (look.backward_half) backward_range.note(nonfinite ? std::numeric_limits<float>::infinity() : absmax);
    if (look.numerics) {
      session_.recorder.numerics(*thread.lane, look.step, look.object, look.weight, look.dtype, stats);
    }
    if (!nonfinite) return;
    site->counters->count_nonfinite(look.step);
    if (site->last_event_step == look.step && site->events_written > 0) return;
    site->last_event_step = look.step;
    if (pending_.size() >= max_events_a_step) return;
    pending_.push_back(event_of(*site, look, result.stats));
    pending_step_ = look.step;
    pending_.back().outputs.front().stats = stats::to_tensor_stats(stats);
  }

  trace::NonfiniteEvent event_of(const SiteState& site, const DeviceLook& look, const trace::TensorStats& output) {
    trace::NonfiniteEvent event;
    event.order = session_.anomaly_order.fetch_add(1, std::memory_order_relaxed);
    event.step = look.step;
    event.micro_batch = look.micro_batch;
    event.site = look.object;
    event.compute_dtype = look.compute_dtype;
    bool known = false;
    bool any_bad = false;
    for (std::uint8_t i = 0; i < look.inputs; ++i) {
      const Result& input = results_[look.input_looks[i] % results_.size()];
      if (input.number != look.input_looks[i]) continue;
      trace::WitnessTensor& seen = event.inputs.emplace_back();
      seen.looked_at = true;
      seen.stats = input.stats;
      seen.type.dtype = input.dtype;
      seen.type.producer = input.site;
      const auto argument = static_cast<std::size_t>(look.input_arguments[i]);
      if (argument < site.op->arguments.size()) seen.argument = site.op->arguments[argument];
      known = true;
      any_bad |= input.stats.nonfinite() > 0;
    }
    // An input that was not looked at may have been what was wrong, unless one that was looked at shows it.
    event.kind = any_bad                               ? trace::OriginKind::propagator
                 : known && !look.unseen_input         ? trace::OriginKind::producer
                 : !known && look.without_float_inputs ? trace::OriginKind::producer
                                                       : trace::OriginKind::unknown;
    trace::WitnessTensor& made = event.outputs.emplace_back();
    made.looked_at = true;
    made.stats = output;
    made.type.dtype = look.dtype;
    made.type.producer = look.object;
    return event;
  }

  /// Writes what was kept of steps before `step`, if they turned out bad; of others a site's first event.
  void settle(std::int64_t step) {
    if (pending_.empty() || step <= pending_step_) return;
    const bool harm = harmed_ >= pending_step_;
    for (trace::NonfiniteEvent& event : pending_) {
      SiteState* const site = site_by_id(session_, event.site);
      if (!site) continue;
      if (!harm) ++site->harmless_steps;
      if (!harm && site->events_written > 0) continue;
      ++site->events_written;
      if (session_.nonfinite_events.fetch_add(1, std::memory_order_relaxed) < max_events_a_run) {
        session_.recorder.define(std::move(event));
      }
    }
    pending_.clear();
    if (harm) session_.recorder.urgent();
  }

  void take_gradient(ThreadState& thread, const DeviceLook& look, const stats::FlatStats& stats) {
    const double scale = std::isfinite(look.scale) ? look.scale : inverse_scale_ > 0 ? 1 / inverse_scale_ : 1;
    double squares = stats.sum_squares;
    if (stats.nonfinite() > 0) {
      trace::NonfiniteGradient row;
      row.step = look.step;
      row.parameter = look.object;
      row.count = static_cast<std::int64_t>(stats.count);
      row.nan = static_cast<std::int64_t>(stats.nan);
      row.infinite = static_cast<std::int64_t>(stats.positive_infinity + stats.negative_infinity);
      session_.recorder.nonfinite_gradient(*thread.lane, row);
      bad(look.step);
      squares = std::numeric_limits<double>::infinity();
    }
    record::GradientSample sample;
    sample.step = look.step;
    sample.parameter = look.object;
    sample.scale = scale;
    sample.backward_dtype = look.backward_dtype;
    if (look.divide) {
      int exponent = 0;
      const bool power = std::frexp(scale, &exponent) == 0.5;
      divided_ = stats;
      if (!power ||
          !stats::divide_by_power_of_two(divided_, exponent - 1, trace::float_limits(look.dtype).smallest_normal)) {
        return;
      }
      session_.recorder.gradient(*thread.lane, sample, divided_);
      squares = divided_.nonfinite() > 0 ? squares : divided_.sum_squares;
    } else {
      session_.recorder.gradient(*thread.lane, sample, stats);
    }
    if (norm_step_ != look.step) write_norm(thread);
    norm_step_ = look.step;
    norm_squares_ += squares;
  }

  void write_norm(ThreadState& thread) {
    if (norm_step_ >= 0) {
      session_.recorder.series(*thread.lane, record::Series::gradient_norm, trace::none, norm_step_,
                               std::sqrt(norm_squares_));
    }
    norm_step_ = -1;
    norm_squares_ = 0;
  }

  void take_loss(ThreadState& thread, const DeviceLook& look, const stats::FlatStats& stats) {
    const double value = stats.nan > 0                 ? unknown
                         : stats.positive_infinity > 0 ? std::numeric_limits<double>::infinity()
                         : stats.negative_infinity > 0 ? -std::numeric_limits<double>::infinity()
                                                       : stats.max;
    if (!std::isfinite(value)) bad(look.step);
    // The scale is known from the latest update that has arrived; before the first one the loss cannot be told.
    const double scale = look.scaled ? scale_ : 1;
    if (std::isfinite(scale)) {
      session_.recorder.series(*thread.lane, record::Series::loss, trace::none, look.step, value / scale);
    }
  }

  void take_update(ThreadState& thread, const DeviceLook& look, const stats::FlatStats& stats) {
    const double value = stats.nan > 0 ? unknown : stats.positive_infinity > 0 ? HUGE_VAL : stats.max;
    const std::lock_guard lock(updates_mutex_);
    switch (look.kind) {
      case DeviceLook::Kind::scale_before:
        arriving_.scale_before = static_cast<float>(value);
        scale_ = value;
        return;
      case DeviceLook::Kind::tracker_before:
        arriving_.tracker_before = static_cast<std::int32_t>(value);
        return;
      case DeviceLook::Kind::found_inf:
        arriving_.found_inf = static_cast<float>(value);
        if (value != 0) bad(look.step);
        return;
      case DeviceLook::Kind::scale_after:
        arriving_.scale_after = static_cast<float>(value);
        scale_ = value;
        return;
      default:
        arriving_.tracker_after = static_cast<std::int32_t>(value);
    }
    // The last of its numbers: the call is complete.
    for (std::size_t i = 0; i < update_count_; ++i) {
      trace::ScalerUpdate row = updates_[i].row;
      if (row.step != look.step || row.scaler != look.object) continue;
      row.scale_before = arriving_.scale_before;
      row.scale_after = arriving_.scale_after;
      row.tracker_before = arriving_.tracker_before;
      row.tracker_after = arriving_.tracker_after;
      row.found_inf = arriving_.found_inf;
      session_.recorder.scaler_update(*thread.lane, row);
      scale_has_arrived(session_, static_cast<double>(row.scale_after));
      if (const float absmax = backward_range.take(); absmax > 0) {
        session_.recorder.series(*thread.lane, record::backward_absmax, row.scaler, row.step,
                                 static_cast<double>(absmax) / static_cast<double>(row.scale_before));
      }
      std::move(updates_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                updates_.begin() + static_cast<std::ptrdiff_t>(update_count_),
                updates_.begin() + static_cast<std::ptrdiff_t>(i));
      --update_count_;
      return;
    }
  }

  Session& session_;
  std::mutex opening_;
  std::array<std::atomic<bool>, 16> opened_{};
  std::array<std::atomic<DeviceRing*>, 16> rings_{};
  std::atomic<int> ring_count_{0};
  std::atomic<bool> abandoned_{false};
  AddressTable latest_;  ///< number of the last look at what is at an address

  std::mutex results_mutex_;
  std::vector<Result> results_ = std::vector<Result>(4096);
  std::vector<trace::NonfiniteEvent> pending_;  ///< of `pending_step_`
  std::int64_t pending_step_ = -1;
  std::int64_t harmed_ = -1;  ///< latest step known to have been harmed
  std::int64_t norm_step_ = -1;
  double norm_squares_ = 0;
  double inverse_scale_ = 0;
  double scale_ = unknown;
  stats::FlatStats divided_;

  std::mutex updates_mutex_;
  std::array<LateUpdate, 64> updates_;
  std::size_t update_count_ = 0;
  trace::ScalerUpdate arriving_;
};

DeviceLooks* make_device_looks(Session& session) noexcept {
  try {
    return new DeviceLooks(session);
  } catch (...) {
    return nullptr;
  }
}

bool on_device(Session& session, const c10::TensorImpl& tensor) noexcept {
  if (tensor.is_cpu() && !host_stands_in_for_device()) return false;
  return session.devices && has_values(tensor) && session.devices->ring(tensor.device()) != nullptr;
}

void look_at_output(Session& session, ThreadState& thread, const Frame& frame, const c10::TensorImpl& output,
                    const ProducerTable::Entry& made) noexcept {
  try {
    DeviceLook look;
    look.kind = DeviceLook::Kind::output;
    look.numerics = session.full_numerics.load(std::memory_order_relaxed);
    look.weight = session.numerics_weight.load(std::memory_order_relaxed);
    look.step = session.step.load(std::memory_order_relaxed);
    look.micro_batch = current_micro_batch(session);
    look.object = made.site;
    look.compute_dtype = frame.site->compute_dtype;
    look.backward_half =
        dtype_of(output) == trace::DType::float16 && frame.phase == trace::Phase::backward && !frame.recompute;
    look.without_float_inputs = true;
    for (std::uint8_t i = 0; i < frame.input_count; ++i) {
      const auto strong = frame.inputs[i].tensor.lock();
      if (!strong || strong->is_wrapped_number() || !trace::is_floating(dtype_of(*strong))) continue;
      look.without_float_inputs = false;
      const std::uint64_t number = session.devices->look_at(frame.inputs[i].address);
      if (number == 0 || look.inputs == DeviceLook::max_inputs) {
        look.unseen_input = true;
        continue;
      }
      look.input_arguments[look.inputs] = frame.inputs[i].argument;
      look.input_looks[look.inputs++] = number;
    }
    session.devices->look(output, look);
    session.devices->looked_at(address_of(output), look);
    // In a step that is looked at in full there are more results than the ring holds.
    if (look.number % stats::StatisticsDevice::rows == 0) collect_device_looks(session, thread);
  } catch (...) {  // Not looked at.
  }
}

void add_gradient_look(Session& session, const c10::TensorImpl& gradient, std::int64_t parameter,
                       trace::DType backward_dtype, double scale, bool divide) noexcept {
  Gathering* const batch = gathering();
  if (!batch) return;
  // The first place is kept for the scale.
  if (batch->count > 0 && (batch->count == batch->views.size() || batch->device != gradient.device())) {
    send_gradient_looks(session, nullptr);
  }
  stats::TensorView& view = batch->views[batch->count];
  if (!view_of(gradient, view)) return;
  DeviceLook& look = batch->looks[batch->count++];
  look = {};
  look.kind = DeviceLook::Kind::gradient;
  look.divide = divide;
  look.backward_dtype = backward_dtype;
  look.step = session.step.load(std::memory_order_relaxed);
  look.object = parameter;
  look.scale = scale;
  batch->device = gradient.device();
}

void send_gradient_looks(Session& session, const c10::TensorImpl* inverse_scale) noexcept {
  Gathering* const batch = gathering();
  if (!batch || !session.devices) return;
  try {
    if (inverse_scale && on_device(session, *inverse_scale)) {
      DeviceLook look;
      look.kind = DeviceLook::Kind::inverse_scale;
      look.step = session.step.load(std::memory_order_relaxed);
      session.devices->look(*inverse_scale, look);
    }
    if (batch->count == 0) return;
    if (DeviceRing* const ring = session.devices->ring(batch->device)) {
      ring->look(current_stream(batch->device), std::span(batch->views).first(batch->count),
                 std::span(batch->looks).first(batch->count));
    }
  } catch (...) {  // Not looked at.
  }
  batch->count = 0;
}

void look_at_loss(Session& session, const c10::TensorImpl& loss, bool scaled) noexcept {
  try {
    DeviceLook look;
    look.kind = DeviceLook::Kind::loss;
    look.scaled = scaled;
    look.step = session.step.load(std::memory_order_relaxed);
    session.devices->look(loss, look);
  } catch (...) {  // Not looked at.
  }
}

namespace {

void look_at_number(Session& session, DeviceLook::Kind kind, const c10::TensorImpl* number, std::int64_t step,
                    std::int64_t scaler) {
  if (!number || !on_device(session, *number)) return;
  DeviceLook look;
  look.kind = kind;
  look.step = step;
  look.object = scaler;
  session.devices->look(*number, look);
}

}  // namespace

void look_before_update(Session& session, const c10::TensorImpl& scale, const c10::TensorImpl* tracker,
                        const c10::TensorImpl* found_inf) noexcept {
  try {
    const std::int64_t step = session.step.load(std::memory_order_relaxed);
    look_at_number(session, DeviceLook::Kind::scale_before, &scale, step, trace::none);
    look_at_number(session, DeviceLook::Kind::tracker_before, tracker, step, trace::none);
    look_at_number(session, DeviceLook::Kind::found_inf, found_inf, step, trace::none);
  } catch (...) {  // Not looked at.
  }
}

void look_after_update(Session& session, const c10::TensorImpl& scale, const c10::TensorImpl* tracker,
                       const trace::ScalerUpdate& update) noexcept {
  try {
    session.devices->add_update(update);
    look_at_number(session, DeviceLook::Kind::scale_after, &scale, update.step, update.scaler);
    look_at_number(session, DeviceLook::Kind::tracker_after, tracker, update.step, update.scaler);
  } catch (...) {  // Not looked at.
  }
}

void collect_device_looks(Session& session, ThreadState& thread) noexcept {
  if (session.devices) session.devices->collect(thread);
}

void finish_device_looks(Session& session, ThreadState* thread) noexcept {
  if (session.devices) session.devices->finish(thread);
}

void abandon_device_looks(Session& session) noexcept {
  if (session.devices) session.devices->abandon();
}

}  // namespace ampscope::observe
