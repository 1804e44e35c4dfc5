// The fields of every record as the trace stores them: one table for the writer and the reader, so that neither can
// know a field that the other does not. The stored name is the member's name.
//
// A table is a function template that shows each member to a visitor: v("name", &Record::member, range). The first
// field of a record that is stored in columns is its key column, see docs/trace-format.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/model.h"

namespace ampscope::trace::schema {

/// What a stored integer may be. A reader leaves out what is outside: whoever comes behind it may index with an id and
/// add two of the others without looking again.
enum class Range : std::uint8_t {
  any,       ///< all that the member's type holds
  id,        ///< -1 or a dense id
  position,  ///< -1 or a step, rank or order: at most 2^53
  count,     ///< 0 to 2^60
  time,      ///< 0 to 2^62, nanoseconds
};

inline constexpr std::int64_t max_id = (std::int64_t{1} << 22) - 1;
inline constexpr std::int64_t max_position = std::int64_t{1} << 53;
inline constexpr std::int64_t max_count = std::int64_t{1} << 60;
inline constexpr std::int64_t max_time = std::int64_t{1} << 62;

/// Largest number of exponents a histogram has: float64 from 2^-1074 to 2^1023.
inline constexpr int min_exponent = -1074;
inline constexpr int max_exponent = 1023;
inline constexpr int max_exponents = max_exponent - min_exponent + 1;

/// Strings longer than this are cut when written and refused when read.
inline constexpr std::size_t max_text = std::size_t{1} << 20;

/// How a stored number becomes an enumerator: `last` is the largest known one; a larger number, written by a newer
/// release, reads as `unknown`.
template <class E>
struct EnumTraits;
template <>
struct EnumTraits<DType> {
  static constexpr DType last = DType::other;
  static constexpr DType unknown = DType::other;
};
template <>
struct EnumTraits<Level> {
  static constexpr Level last = Level::shadow;
  static constexpr Level unknown = Level::automatic;
};
template <>
struct EnumTraits<Phase> {
  static constexpr Phase last = Phase::other;
  static constexpr Phase unknown = Phase::other;
};
template <>
struct EnumTraits<SiteKind> {
  static constexpr SiteKind last = SiteKind::range;
  static constexpr SiteKind unknown = SiteKind::range;
};
template <>
struct EnumTraits<OriginKind> {
  static constexpr OriginKind last = OriginKind::absorber;
  static constexpr OriginKind unknown = OriginKind::unknown;
};
/// No event may stand for one that is not known, so the reader leaves these out of their pattern.
inline constexpr EventKind unknown_event = static_cast<EventKind>(255);
template <>
struct EnumTraits<EventKind> {
  static constexpr EventKind last = EventKind::refusal;
  static constexpr EventKind unknown = unknown_event;
};

/// A scaler update and the `repeat` updates that followed it and did nothing but count: each is the successor of the
/// one before.
struct ScalerRun : ScalerUpdate {
  std::int64_t repeat = 0;
};

/// The update that follows `update` when no non-finite gradient is found, the scale stays and the tracker counts on.
[[nodiscard]] ScalerUpdate successor(const ScalerUpdate& update) noexcept;

template <class T>
struct Fields {
  static constexpr bool known = false;
};

struct Known {
  static constexpr bool known = true;
};

template <>
struct Fields<SourceLine> : Known {
  template <class V>
  static constexpr void visit(V& v) {
    v("file", &SourceLine::file);
    v("line", &SourceLine::line);
    v("function", &SourceLine::function);
  }
};

template <>
struct Fields<TensorType> : Known {
  template <class V>
  static constexpr void visit(V& v) {
    v("dtype", &TensorType::dtype);
    v("shape", &TensorType::shape);
    v("device", &TensorType::device);
    v("parameter", &TensorType::parameter, Range::id);
    v("producer", &TensorType::producer, Range::id);
    v("requires_grad", &TensorType::requires_grad);
  }
};

template <>
struct Fields<TensorStats> : Known {
  template <class V>
  static constexpr void visit(V& v) {
    v("count", &TensorStats::count, Range::count);
    v("nan", &TensorStats::nan, Range::count);
    v("positive_infinity", &TensorStats::positive_infinity, Range::count);
    v("negative_infinity", &TensorStats::negative_infinity, Range::count);
    v("zero", &TensorStats::zero, Range::count);
    v("subnormal", &TensorStats::subnormal, Range::count);
    v("min", &TensorStats::min);
    v("max", &TensorStats::max);
    v("absmax", &TensorStats::absmax);
    v("sum_squares", &TensorStats::sum_squares);
    v("exponents", &TensorStats::exponents);
  }
};

template <>
struct Fields<RunInfo> : Known {
  static constexpr std::string_view kind = "run";
  template <class V>
  static constexpr void visit(V& v) {
    v("run_id", &RunInfo::run_id);
    v("tool_version", &RunInfo::tool_version);
    v("command", &RunInfo::command);
    v("working_directory", &RunInfo::working_directory);
    v("language", &RunInfo::language);
    v("hostname", &RunInfo::hostname);
    v("pid", &RunInfo::pid, Range::count);
    v("parent_pid", &RunInfo::parent_pid, Range::count);
    v("rank", &RunInfo::rank, Range::position);
    v("local_rank", &RunInfo::local_rank, Range::position);
    v("world_size", &RunInfo::world_size, Range::position);
    v("start_time_ns", &RunInfo::start_time_ns, Range::time);
    v("torch_version", &RunInfo::torch_version);
    v("python_version", &RunInfo::python_version);
    v("processor", &RunInfo::processor);
    v("processor_features", &RunInfo::processor_features);
    v("devices", &RunInfo::devices);
    v("threads", &RunInfo::threads);
    v("level", &RunInfo::level);
    v("budget_percent", &RunInfo::budget_percent);
    v("max_bytes", &RunInfo::max_bytes, Range::count);
  }
};

template <>
struct Fields<Site> : Known {
  static constexpr std::string_view kind = "site";
  template <class V>
  static constexpr void visit(V& v) {
    v("id", &Site::id, Range::id);
    v("parent", &Site::parent, Range::id);
    v("kind", &Site::kind);
    v("phase", &Site::phase);
    v("name", &Site::name);
    v("overload", &Site::overload);
    v("module", &Site::module);
    v("module_class", &Site::module_class);
    v("has_module", &Site::has_module);
    v("source", &Site::source);
    v("stack", &Site::stack);
    v("api", &Site::api);
    v("api_arguments", &Site::api_arguments);
    v("thread", &Site::thread);
    v("autocast", &Site::autocast);
    v("autocast_dtype", &Site::autocast_dtype);
    v("autocast_device", &Site::autocast_device);
    v("grad_enabled", &Site::grad_enabled);
    v("in_recompute", &Site::in_recompute);
    v("traced", &Site::traced);
    v("autocast_cache", &Site::autocast_cache);
    v("autocast_elsewhere", &Site::autocast_elsewhere);
    v("inputs", &Site::inputs);
    v("outputs", &Site::outputs);
    v("compute_dtype", &Site::compute_dtype);
    v("scalars", &Site::scalars);
    v("scalar_names", &Site::scalar_names);
    v("forward_site", &Site::forward_site, Range::id);
    v("sequence_number", &Site::sequence_number, Range::position);
  }
};

template <>
struct Fields<SiteTotals> : Known {
  static constexpr std::string_view kind = "totals";
  template <class V>
  static constexpr void visit(V& v) {
    v("site", &SiteTotals::site, Range::id);
    v("calls", &SiteTotals::calls, Range::count);
    v("steps", &SiteTotals::steps, Range::count);
    v("first_step", &SiteTotals::first_step, Range::position);
    v("last_step", &SiteTotals::last_step, Range::position);
    v("elements", &SiteTotals::elements, Range::count);
    v("bytes", &SiteTotals::bytes, Range::count);
    v("time_ns", &SiteTotals::time_ns, Range::time);
    v("checked_calls", &SiteTotals::checked_calls, Range::count);
    v("nonfinite_calls", &SiteTotals::nonfinite_calls, Range::count);
    v("nonfinite_steps", &SiteTotals::nonfinite_steps, Range::count);
    v("first_nonfinite_step", &SiteTotals::first_nonfinite_step, Range::position);
    v("last_nonfinite_step", &SiteTotals::last_nonfinite_step, Range::position);
    v("absmax", &SiteTotals::absmax);
    v("failed_calls", &SiteTotals::failed_calls, Range::count);
    v("first_failed_step", &SiteTotals::first_failed_step, Range::position);
  }
};

template <>
struct Fields<Parameter> : Known {
  static constexpr std::string_view kind = "parameter";
  template <class V>
  static constexpr void visit(V& v) {
    v("id", &Parameter::id, Range::id);
    v("name", &Parameter::name);
    v("dtype", &Parameter::dtype);
    v("shape", &Parameter::shape);
    v("count", &Parameter::count, Range::count);
    v("device", &Parameter::device);
    v("module", &Parameter::module);
    v("module_class", &Parameter::module_class);
    v("optimizer", &Parameter::optimizer, Range::id);
    v("first_step", &Parameter::first_step, Range::position);
    v("replaces", &Parameter::replaces, Range::id);
    v("made_by", &Parameter::made_by, Range::id);
  }
};

template <>
struct Fields<Optimizer> : Known {
  static constexpr std::string_view kind = "optimizer";
  template <class V>
  static constexpr void visit(V& v) {
    v("id", &Optimizer::id, Range::id);
    v("name", &Optimizer::name);
    v("fused", &Optimizer::fused);
    v("source", &Optimizer::source);
    v("settings", &Optimizer::settings);
    v("restored", &Optimizer::restored);
  }
};

template <>
struct Fields<Scaler> : Known {
  static constexpr std::string_view kind = "scaler";
  template <class V>
  static constexpr void visit(V& v) {
    v("id", &Scaler::id, Range::id);
    v("implementation", &Scaler::implementation);
    v("source", &Scaler::source);
    v("enabled", &Scaler::enabled);
    v("created", &Scaler::created);
    v("restored", &Scaler::restored);
  }
};

template <>
struct Fields<ProtocolEvent> : Known {
  template <class V>
  static constexpr void visit(V& v) {
    v("kind", &ProtocolEvent::kind);
    v("object", &ProtocolEvent::object, Range::id);
    v("site", &ProtocolEvent::site, Range::id);
    v("flags", &ProtocolEvent::flags);
    v("optimizers", &ProtocolEvent::optimizers);
    v("added", &ProtocolEvent::added);
  }
};

template <>
struct Fields<StepPattern> : Known {
  static constexpr std::string_view kind = "pattern";
  template <class V>
  static constexpr void visit(V& v) {
    v("id", &StepPattern::id, Range::id);
    v("events", &StepPattern::events);
  }
};

template <>
struct Fields<StepRun> : Known {
  static constexpr std::string_view kind = "step_runs";
  template <class V>
  static constexpr void visit(V& v) {
    v("first_step", &StepRun::first_step, Range::position);
    v("count", &StepRun::count, Range::position);
    v("pattern", &StepRun::pattern, Range::id);
  }
};

template <>
struct Fields<Schedule> : Known {
  static constexpr std::string_view kind = "schedule";
  template <class V>
  static constexpr void visit(V& v) {
    v("id", &Schedule::id, Range::id);
    v("name", &Schedule::name);
    v("optimizer", &Schedule::optimizer, Range::id);
    v("source", &Schedule::source);
  }
};

template <>
struct Fields<ScalerRun> : Known {
  static constexpr std::string_view kind = "scaler_updates";
  template <class V>
  static constexpr void visit(V& v) {
    v("step", &ScalerRun::step, Range::position);
    v("scaler", &ScalerRun::scaler, Range::id);
    v("scale_before", &ScalerRun::scale_before);
    v("scale_after", &ScalerRun::scale_after);
    v("tracker_before", &ScalerRun::tracker_before);
    v("tracker_after", &ScalerRun::tracker_after);
    v("found_inf", &ScalerRun::found_inf);
    v("growth_factor", &ScalerRun::growth_factor);
    v("backoff_factor", &ScalerRun::backoff_factor);
    v("growth_interval", &ScalerRun::growth_interval);
    v("assigned", &ScalerRun::assigned);
    v("repeat", &ScalerRun::repeat, Range::count);
  }
};

template <>
struct Fields<GradientWindow> : Known {
  static constexpr std::string_view kind = "gradients";
  template <class V>
  static constexpr void visit(V& v) {
    v("parameter", &GradientWindow::parameter, Range::id);
    v("first_step", &GradientWindow::first_step, Range::position);
    v("last_step", &GradientWindow::last_step, Range::position);
    v("steps", &GradientWindow::steps, Range::count);
    v("nonfinite_steps", &GradientWindow::nonfinite_steps, Range::count);
    v("weight", &GradientWindow::weight);
    v("zero_squares", &GradientWindow::zero_squares);
    v("scale_min", &GradientWindow::scale_min);
    v("scale_max", &GradientWindow::scale_max);
    v("backward_dtype", &GradientWindow::backward_dtype);
    v("stats", &GradientWindow::stats);
  }
};

template <>
struct Fields<NonfiniteGradient> : Known {
  static constexpr std::string_view kind = "nonfinite_gradients";
  template <class V>
  static constexpr void visit(V& v) {
    v("step", &NonfiniteGradient::step, Range::position);
    v("parameter", &NonfiniteGradient::parameter, Range::id);
    v("count", &NonfiniteGradient::count, Range::count);
    v("nan", &NonfiniteGradient::nan, Range::count);
    v("infinite", &NonfiniteGradient::infinite, Range::count);
  }
};

template <>
struct Fields<SiteNumerics> : Known {
  static constexpr std::string_view kind = "numerics";
  template <class V>
  static constexpr void visit(V& v) {
    v("site", &SiteNumerics::site, Range::id);
    v("step", &SiteNumerics::step, Range::position);
    v("weight", &SiteNumerics::weight);
    v("dtype", &SiteNumerics::dtype);
    v("stats", &SiteNumerics::stats);
  }
};

template <>
struct Fields<WitnessTensor> : Known {
  template <class V>
  static constexpr void visit(V& v) {
    v("type", &WitnessTensor::type);
    v("looked_at", &WitnessTensor::looked_at);
    v("stats", &WitnessTensor::stats);
    v("argument", &WitnessTensor::argument);
    v("finite_before", &WitnessTensor::finite_before);
    v("earlier_step", &WitnessTensor::earlier_step);
  }
};

template <>
struct Fields<Replay> : Known {
  template <class V>
  static constexpr void visit(V& v) {
    v("done", &Replay::done);
    v("precision", &Replay::precision);
    v("finite", &Replay::finite);
    v("absmax", &Replay::absmax);
    v("not_done_because", &Replay::not_done_because);
  }
};

template <>
struct Fields<NonfiniteEvent> : Known {
  static constexpr std::string_view kind = "nonfinite_event";
  template <class V>
  static constexpr void visit(V& v) {
    v("order", &NonfiniteEvent::order, Range::position);
    v("step", &NonfiniteEvent::step, Range::position);
    v("micro_batch", &NonfiniteEvent::micro_batch, Range::position);
    v("site", &NonfiniteEvent::site, Range::id);
    v("kind", &NonfiniteEvent::kind);
    v("compute_dtype", &NonfiniteEvent::compute_dtype);
    v("inputs", &NonfiniteEvent::inputs);
    v("outputs", &NonfiniteEvent::outputs);
    v("scalars", &NonfiniteEvent::scalars);
    v("scalar_names", &NonfiniteEvent::scalar_names);
    v("replay", &NonfiniteEvent::replay);
    v("times_zero", &NonfiniteEvent::times_zero, Range::count);
  }
};

template <>
struct Fields<RecentCall> : Known {
  template <class V>
  static constexpr void visit(V& v) {
    v("order", &RecentCall::order, Range::position);
    v("step", &RecentCall::step, Range::position);
    v("site", &RecentCall::site, Range::id);
    v("absmax", &RecentCall::absmax);
    v("nonfinite", &RecentCall::nonfinite);
  }
};

template <>
struct Fields<FlightRecord> : Known {
  static constexpr std::string_view kind = "flight_record";
  template <class V>
  static constexpr void visit(V& v) {
    v("step", &FlightRecord::step, Range::position);
    v("anomaly_order", &FlightRecord::anomaly_order, Range::position);
    v("calls", &FlightRecord::calls);
  }
};

template <>
struct Fields<SeriesPoint> : Known {
  static constexpr std::string_view kind = "series";
  template <class V>
  static constexpr void visit(V& v) {
    v("first_step", &SeriesPoint::first_step, Range::position);
    v("last_step", &SeriesPoint::last_step, Range::position);
    v("name", &SeriesPoint::name);
    v("object", &SeriesPoint::object, Range::id);
    v("count", &SeriesPoint::count, Range::count);
    v("nonfinite", &SeriesPoint::nonfinite, Range::count);
    v("mean", &SeriesPoint::mean);
    v("min", &SeriesPoint::min);
    v("max", &SeriesPoint::max);
  }
};

template <>
struct Fields<HiddenRegion> : Known {
  static constexpr std::string_view kind = "hidden_region";
  template <class V>
  static constexpr void visit(V& v) {
    v("kind", &HiddenRegion::kind);
    v("name", &HiddenRegion::name);
    v("calls", &HiddenRegion::calls, Range::count);
    v("time_ns", &HiddenRegion::time_ns, Range::time);
    v("first_step", &HiddenRegion::first_step, Range::position);
  }
};

template <>
struct Fields<RecorderStatus> : Known {
  static constexpr std::string_view kind = "status";
  template <class V>
  static constexpr void visit(V& v) {
    v("steps", &RecorderStatus::steps, Range::count);
    v("events_seen", &RecorderStatus::events_seen, Range::count);
    v("events_dropped", &RecorderStatus::events_dropped, Range::count);
    v("sites_dropped", &RecorderStatus::sites_dropped, Range::count);
    v("elapsed_ns", &RecorderStatus::elapsed_ns, Range::time);
    v("own_time_ns", &RecorderStatus::own_time_ns, Range::time);
    v("trace_bytes", &RecorderStatus::trace_bytes, Range::count);
    v("switched_off_because", &RecorderStatus::switched_off_because);
    v("switched_off_at_step", &RecorderStatus::switched_off_at_step, Range::position);
    v("operator_steps", &RecorderStatus::operator_steps, Range::count);
    v("gradient_steps", &RecorderStatus::gradient_steps, Range::count);
    v("full_steps", &RecorderStatus::full_steps, Range::count);
    v("cost", &RecorderStatus::cost);
    v("cost_low", &RecorderStatus::cost_low);
    v("cost_high", &RecorderStatus::cost_high);
  }
};

template <>
struct Fields<RunEnd> : Known {
  static constexpr std::string_view kind = "end";
  template <class V>
  static constexpr void visit(V& v) {
    v("how", &RunEnd::how);
    v("detail", &RunEnd::detail);
    v("end_time_ns", &RunEnd::end_time_ns, Range::time);
  }
};

template <>
struct Fields<ExitStatus> : Known {
  static constexpr std::string_view kind = "exit";
  template <class V>
  static constexpr void visit(V& v) {
    v("status", &ExitStatus::status);
  }
};

}  // namespace ampscope::trace::schema
