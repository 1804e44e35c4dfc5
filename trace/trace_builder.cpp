#include "trace/trace_builder.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "trace/cbor.h"
#include "trace/references.h"

namespace ampscope::trace {

namespace {

template <class T>
struct MemberType;
template <class T>
struct MemberType<T Trace::*> {
  using Type = T;
};
template <class T>
struct MemberType<std::optional<T> Trace::*> {
  using Type = T;
};
template <class T>
struct MemberType<std::vector<T> Trace::*> {
  using Type = T;
};

/// The type of the records in a member of Trace.
template <auto Member>
using RecordOf = typename MemberType<decltype(Member)>::Type;

}  // namespace

/// A single record: a later one replaces an earlier one.
template <auto Member>
bool TraceBuilder::replace(std::string_view fields, DecodeContext& context, std::uint64_t& /*rows*/) {
  RecordOf<Member> record;
  if (!decode_record(fields, context, record)) return false;
  trace_.*Member = std::move(record);
  return true;
}

/// A record with an id, which is its index; a later one of the same id replaces an earlier one.
template <auto Member>
bool TraceBuilder::place(std::string_view fields, DecodeContext& context, std::uint64_t& /*rows*/) {
  RecordOf<Member> record;
  if (!decode_record(fields, context, record)) return false;
  if (!grow(trace_.*Member, record.id, memory_)) {
    context.damaged = true;
    return true;
  }
  const auto index = static_cast<std::size_t>(record.id);
  (trace_.*Member)[index] = std::move(record);
  return true;
}

template <auto Member>
bool TraceBuilder::append(std::string_view fields, DecodeContext& context, std::uint64_t& /*rows*/) {
  RecordOf<Member> record;
  if (!memory_.take(sizeof(record)) || !decode_record(fields, context, record)) return false;
  (trace_.*Member).push_back(std::move(record));
  return true;
}

template <auto Member>
bool TraceBuilder::append_rows(std::string_view fields, DecodeContext& context, std::uint64_t& rows) {
  const std::size_t before = (trace_.*Member).size();
  if (!decode_columns(fields, context, trace_.*Member)) return false;
  rows = (trace_.*Member).size() - before;
  return true;
}

bool TraceBuilder::add_totals(std::string_view fields, DecodeContext& context, std::uint64_t& rows) {
  std::vector<SiteTotals> totals;
  if (!decode_columns(fields, context, totals)) return false;
  rows = totals.size();
  for (const auto& record : totals) {
    if (grow(trace_.totals, record.site, memory_)) {
      trace_.totals[static_cast<std::size_t>(record.site)] = record;
    } else {
      context.damaged = true;
    }
  }
  return true;
}

bool TraceBuilder::add_scaler_updates(std::string_view fields, DecodeContext& context, std::uint64_t& rows) {
  std::vector<schema::ScalerRun> runs;
  if (!decode_columns(fields, context, runs)) return false;
  rows = 0;
  for (const auto& run : runs) {
    const auto updates = static_cast<std::uint64_t>(run.repeat) + 1;
    if (updates >
        limits_.scaler_updates - std::min<std::uint64_t>(limits_.scaler_updates, trace_.scaler_updates.size())) {
      context.too_much = true;
      return false;
    }
    ScalerUpdate update = run;
    for (std::uint64_t i = 0; i < updates; ++i) {
      trace_.scaler_updates.push_back(update);
      update = schema::successor(update);
    }
    rows += updates;
  }
  return true;
}

bool TraceBuilder::add_hidden_region(std::string_view fields, DecodeContext& context, std::uint64_t& rows) {
  if (!append<&Trace::hidden_regions>(fields, context, rows)) return false;
  auto& regions = trace_.hidden_regions;
  const auto same = std::find_if(regions.begin(), regions.end() - 1, [&](const HiddenRegion& region) {
    return region.kind == regions.back().kind && region.name == regions.back().name;
  });
  if (same != regions.end() - 1) {
    *same = std::move(regions.back());
    regions.pop_back();
  }
  return true;
}

TraceBuilder::Handler TraceBuilder::handler(std::string_view kind) noexcept {
  using schema::Fields;
  static constexpr std::array<std::pair<std::string_view, Handler>, 23> handlers = {{
      {Fields<RunInfo>::kind, &TraceBuilder::replace<&Trace::run>},
      {Fields<Site>::kind, &TraceBuilder::place<&Trace::sites>},
      {Fields<SiteTotals>::kind, &TraceBuilder::add_totals},
      {Fields<Parameter>::kind, &TraceBuilder::place<&Trace::parameters>},
      {Fields<Optimizer>::kind, &TraceBuilder::place<&Trace::optimizers>},
      {Fields<Scaler>::kind, &TraceBuilder::place<&Trace::scalers>},
      {Fields<Schedule>::kind, &TraceBuilder::place<&Trace::schedules>},
      {Fields<StepPattern>::kind, &TraceBuilder::place<&Trace::patterns>},
      {Fields<StepRun>::kind, &TraceBuilder::append_rows<&Trace::step_runs>},
      {Fields<schema::ScalerRun>::kind, &TraceBuilder::add_scaler_updates},
      {Fields<GradientWindow>::kind, &TraceBuilder::append_rows<&Trace::gradients>},
      {Fields<NonfiniteGradient>::kind, &TraceBuilder::append_rows<&Trace::nonfinite_gradients>},
      {Fields<SiteNumerics>::kind, &TraceBuilder::append_rows<&Trace::numerics>},
      {Fields<RoundingErrors>::kind, &TraceBuilder::append_rows<&Trace::rounding_errors>},
      {Fields<WriteSample>::kind, &TraceBuilder::append_rows<&Trace::writes>},
      {Fields<NonfiniteEvent>::kind, &TraceBuilder::append<&Trace::nonfinite_events>},
      {Fields<FlightRecord>::kind, &TraceBuilder::append<&Trace::flight_records>},
      {Fields<SeriesPoint>::kind, &TraceBuilder::append_rows<&Trace::series>},
      {Fields<HiddenRegion>::kind, &TraceBuilder::add_hidden_region},
      {Fields<RoundTrip>::kind, &TraceBuilder::append<&Trace::round_trips>},
      {Fields<RecorderStatus>::kind, &TraceBuilder::replace<&Trace::status>},
      {Fields<RunEnd>::kind, &TraceBuilder::replace<&Trace::end>},
      {Fields<ExitStatus>::kind, &TraceBuilder::replace<&Trace::exit>},
  }};
  const auto* const found =
      std::find_if(handlers.begin(), handlers.end(), [kind](const auto& entry) { return entry.first == kind; });
  return found == handlers.end() ? nullptr : found->second;
}

void TraceBuilder::add_frame(std::string_view content) {
  trace_.content_bytes += content.size();
  cbor::Decoder decoder(content);
  while (!decoder.at_end()) {
    const auto record = decoder.whole(limits_.depth);
    if (!record) {
      damaged("a frame holds something that is no record");
      return;
    }
    add_record(*record);
  }
}

void TraceBuilder::add_record(std::string_view record) {
  cbor::Decoder decoder(record);
  const auto head = decoder.next();
  const auto kind = head && head->type == cbor::Type::array && head->value >= 2 ? decoder.next() : std::nullopt;
  const auto fields = kind && kind->type == cbor::Type::text ? decoder.whole(limits_.depth) : std::nullopt;
  if (!fields) {
    damaged("a frame holds something that is no record");
    return;
  }
  const Handler handle = handler(kind->string);
  if (handle == nullptr) {
    ++trace_.damage.records_skipped;
    // The names of unknown kinds come from the file, so they are counted under one of ours.
    count("unknown", 1, record.size());
    return;
  }
  DecodeContext context{memory_, limits_.depth};
  std::uint64_t rows = 1;
  const bool read = (this->*handle)(*fields, context, rows);
  if (context.too_much) {
    damaged("takes more memory than a file of this size can need", kind->string);
  } else if (!read) {
    damaged("has a field of a wrong type", kind->string);
  } else if (context.damaged) {
    damaged("has a value that is out of range", kind->string);
  }
  if (read) {
    ++trace_.damage.records_read;
    count(kind->string, rows, record.size());
  }
}

void TraceBuilder::count(std::string_view kind, std::uint64_t rows, std::size_t bytes) {
  auto found = std::find_if(trace_.sizes.begin(), trace_.sizes.end(),
                            [kind](const KindSize& size) { return size.kind == kind; });
  if (found == trace_.sizes.end()) found = trace_.sizes.insert(found, {std::string(kind), 0, 0});
  found->records += rows;
  found->bytes += bytes;
}

void TraceBuilder::damaged(std::string_view what, std::string_view kind) {
  ++trace_.damage.records_damaged;
  if (!trace_.damage.reason.empty()) return;
  if (!kind.empty()) trace_.damage.reason = "a record of kind \"" + std::string(kind) + "\" ";
  trace_.damage.reason += what;
}

void TraceBuilder::order_step_runs() {
  auto& runs = trace_.step_runs;
  const std::size_t before = runs.size();
  std::erase_if(runs, [](const StepRun& run) { return run.count <= 0 || run.first_step < 0; });
  bool contradiction = runs.size() != before;
  std::stable_sort(runs.begin(), runs.end(),
                   [](const StepRun& a, const StepRun& b) { return a.first_step < b.first_step; });
  std::vector<StepRun> ordered;
  for (StepRun run : runs) {
    if (!ordered.empty()) {
      StepRun& last = ordered.back();
      const std::int64_t end = last.first_step + last.count;
      if (run.first_step < end) {
        // Whoever wrote the trace counted a step twice: it stays with the run that began first.
        contradiction = true;
        run.count -= end - run.first_step;
        run.first_step = end;
        if (run.count <= 0) continue;
      }
      if (run.first_step == end && run.pattern == last.pattern) {
        last.count += run.count;
        continue;
      }
    }
    ordered.push_back(run);
  }
  runs = std::move(ordered);
  if (contradiction) damaged("step runs contradict one another");
}

void TraceBuilder::finish() {
  order_step_runs();
  const auto by_step = [](const GradientWindow& a, const GradientWindow& b) {
    return std::tie(a.first_step, a.parameter) < std::tie(b.first_step, b.parameter);
  };
  std::stable_sort(trace_.gradients.begin(), trace_.gradients.end(), by_step);
  std::stable_sort(trace_.nonfinite_events.begin(), trace_.nonfinite_events.end(),
                   [](const NonfiniteEvent& a, const NonfiniteEvent& b) { return a.order < b.order; });
  const std::uint64_t changed = resolve_references(trace_, memory_);
  if (changed != 0) {
    trace_.damage.records_damaged += changed;
    if (trace_.damage.reason.empty()) trace_.damage.reason = "records refer to something that cannot be";
  }
}

}  // namespace ampscope::trace
