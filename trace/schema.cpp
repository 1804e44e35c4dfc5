#include "trace/schema.h"

#include <cstddef>
#include <utility>

namespace ampscope::trace::schema {

namespace {

// Counts the members of an aggregate and the fields of its table, so that a member added to trace/model.h without a
// line in its table does not compile.
struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): only ever named in unevaluated expressions
};

template <class T, std::size_t... I>
constexpr bool takes(std::index_sequence<I...> /*indices*/) {
  return requires { T{(static_cast<void>(I), Anything{})...}; };
}

template <class T, std::size_t N = 1>
constexpr std::size_t member_count() {
  if constexpr (!takes<T>(std::make_index_sequence<N>{})) {
    return N - 1;
  } else {
    return member_count<T, N + 1>();
  }
}

struct Counter {
  std::size_t fields = 0;
  template <class Member>
  constexpr void operator()(std::string_view /*name*/, Member /*member*/, Range /*range*/ = Range::any) {
    ++fields;
  }
};

template <class T>
constexpr std::size_t field_count() {
  Counter counter;
  Fields<T>::visit(counter);
  return counter.fields;
}

template <class... T>
constexpr bool complete() {
  return ((member_count<T>() == field_count<T>()) && ...);
}

static_assert(complete<SourceLine, TensorType, TensorStats, RunInfo, Site, SiteTotals, Parameter, Optimizer, Scaler,
                       ProtocolEvent, StepPattern, StepRun, Schedule, GradientWindow, NonfiniteGradient, SiteNumerics,
                       RoundingErrors, WriteSample, WitnessTensor, Replay, NonfiniteEvent, RecentCall, FlightRecord,
                       SeriesPoint, HiddenRegion, RoundTrip, RecorderStatus, RunEnd, ExitStatus>(),
              "a member of trace/model.h has no line in its table in trace/schema.h");
static_assert(member_count<ScalerUpdate>() + 1 == field_count<ScalerRun>());

}  // namespace

ScalerUpdate successor(const ScalerUpdate& update) noexcept {
  ScalerUpdate next = update;
  next.step = update.step + 1;
  next.scale_before = update.scale_after;
  next.tracker_before = update.tracker_after;
  // Unsigned: the tracker of a damaged or hostile trace may stand at its largest value.
  next.tracker_after = static_cast<std::int32_t>(static_cast<std::uint32_t>(update.tracker_after) + 1U);
  next.found_inf = 0;
  next.assigned = false;
  return next;
}

}  // namespace ampscope::trace::schema
