// What is written is what is read, bit for bit, for every record and every field.

#include "tests/trace/round_trip.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"

namespace ampscope::trace::test {
namespace {

/// Every field differs from its default: a field that is lost cannot go unnoticed.
template <class T>
void expect_all_set(const T& record) {
  const T plain;
  const auto check = [&](std::string_view name, auto member, Range /*range*/ = Range::any) {
    EXPECT_FALSE(equal(record.*member, plain.*member)) << Fields<T>::kind << " " << name;
  };
  Fields<T>::visit(check);
}

template <class T>
T every_field(Filler& filler) {
  T record = filler.make<T>();
  expect_all_set(record);
  return record;
}

TEST(RoundTrip, EveryFieldOfSingleRecords) {
  Filler filler;
  const auto run = every_field<RunInfo>(filler);
  const auto status = every_field<RecorderStatus>(filler);
  const auto end = every_field<RunEnd>(filler);
  const auto exit = every_field<ExitStatus>(filler);
  const auto region = every_field<HiddenRegion>(filler);
  const auto returned = every_field<trace::RoundTrip>(filler);
  const auto event = every_field<NonfiniteEvent>(filler);
  const auto flight = every_field<FlightRecord>(filler);
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(run);
    writer.add(status);
    writer.add(end);
    writer.add(exit);
    writer.add(region);
    writer.add(returned);
    writer.add(event);
    writer.add(flight);
  });
  EXPECT_SAME(trace.run, run);
  EXPECT_SAME(trace.status, status);
  ASSERT_TRUE(trace.end.has_value());
  EXPECT_SAME(*trace.end, end);
  ASSERT_TRUE(trace.exit.has_value());
  EXPECT_SAME(*trace.exit, exit);
  ASSERT_EQ(trace.hidden_regions.size(), 1U);
  EXPECT_SAME(trace.hidden_regions[0], region);
  ASSERT_EQ(trace.round_trips.size(), 1U);
  EXPECT_SAME(trace.round_trips[0], returned);
  ASSERT_EQ(trace.nonfinite_events.size(), 1U);
  EXPECT_SAME(trace.nonfinite_events[0], event);
  ASSERT_EQ(trace.flight_records.size(), 1U);
  EXPECT_SAME(trace.flight_records[0], flight);
}

TEST(RoundTrip, EveryFieldOfRecordsWithAnId) {
  Filler filler;
  const auto site = every_field<Site>(filler);
  const auto parameter = every_field<Parameter>(filler);
  const auto optimizer = every_field<Optimizer>(filler);
  const auto scaler = every_field<Scaler>(filler);
  const auto schedule = every_field<Schedule>(filler);
  auto pattern = every_field<StepPattern>(filler);
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(site);
    writer.add(parameter);
    writer.add(optimizer);
    writer.add(scaler);
    writer.add(schedule);
    writer.add(pattern);
  });
  const auto at = [](std::int64_t id) { return static_cast<std::size_t>(id); };
  ASSERT_GT(trace.sites.size(), at(site.id));
  EXPECT_SAME(trace.sites[at(site.id)], site);
  ASSERT_GT(trace.parameters.size(), at(parameter.id));
  EXPECT_SAME(trace.parameters[at(parameter.id)], parameter);
  ASSERT_GT(trace.optimizers.size(), at(optimizer.id));
  EXPECT_SAME(trace.optimizers[at(optimizer.id)], optimizer);
  ASSERT_GT(trace.scalers.size(), at(scaler.id));
  EXPECT_SAME(trace.scalers[at(scaler.id)], scaler);
  ASSERT_GT(trace.schedules.size(), at(schedule.id));
  EXPECT_SAME(trace.schedules[at(schedule.id)], schedule);
  ASSERT_GT(trace.patterns.size(), at(pattern.id));
  EXPECT_SAME(trace.patterns[at(pattern.id)], pattern);
}

TEST(RoundTrip, EveryFieldOfRecordsInColumns) {
  Filler filler;
  std::vector<SiteTotals> totals;
  std::vector<StepRun> runs;
  std::vector<ScalerUpdate> updates;
  std::vector<GradientWindow> gradients;
  std::vector<NonfiniteGradient> nonfinite;
  std::vector<SiteNumerics> numerics;
  std::vector<RoundingErrors> errors;
  std::vector<WriteSample> writes;
  std::vector<SeriesPoint> series;
  for (int i = 0; i < 3; ++i) {
    totals.push_back(every_field<SiteTotals>(filler));
    runs.push_back(every_field<StepRun>(filler));
    runs.back().first_step = 100'000 * (i + 1);
    const auto update = every_field<schema::ScalerRun>(filler);
    updates.push_back(update);
    gradients.push_back(every_field<GradientWindow>(filler));
    nonfinite.push_back(every_field<NonfiniteGradient>(filler));
    numerics.push_back(every_field<SiteNumerics>(filler));
    errors.push_back(every_field<RoundingErrors>(filler));
    writes.push_back(every_field<WriteSample>(filler));
    series.push_back(every_field<SeriesPoint>(filler));
  }
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(rows(totals));
    writer.add(rows(runs));
    writer.add(rows(updates));
    writer.add(rows(gradients));
    writer.add(rows(nonfinite));
    writer.add(rows(numerics));
    writer.add(rows(errors));
    writer.add(rows(writes));
    writer.add(rows(series));
  });
  ASSERT_EQ(trace.totals.size(), trace.sites.size());
  for (const auto& record : totals)
    EXPECT_SAME(trace.totals.at(static_cast<std::size_t>(record.site)), record);
  EXPECT_TRUE(equal(trace.step_runs, runs));
  EXPECT_TRUE(equal(trace.scaler_updates, updates));
  EXPECT_TRUE(equal(trace.gradients, gradients));
  EXPECT_TRUE(equal(trace.nonfinite_gradients, nonfinite));
  EXPECT_TRUE(equal(trace.numerics, numerics));
  EXPECT_TRUE(equal(trace.rounding_errors, errors));
  EXPECT_TRUE(equal(trace.writes, writes));
  EXPECT_TRUE(equal(trace.series, series));
}

TEST(RoundTrip, DefaultsAndEmptySpans) {
  const Trace trace = through_file([](Writer& writer) {
    writer.add(RunInfo{});
    writer.add(std::span<const SiteTotals>{});
    writer.add(std::span<const ScalerUpdate>{});
    const std::vector<SeriesPoint> series(2);
    writer.add(rows(series));
    writer.add(NonfiniteEvent{});
  });
  EXPECT_SAME(trace.run, RunInfo{});
  EXPECT_TRUE(trace.totals.empty());
  EXPECT_TRUE(trace.scaler_updates.empty());
  EXPECT_EQ(trace.damage.records_read, 3U);
  ASSERT_EQ(trace.series.size(), 2U);
  EXPECT_SAME(trace.series[1], SeriesPoint{});
  ASSERT_EQ(trace.nonfinite_events.size(), 1U);
  EXPECT_SAME(trace.nonfinite_events[0], NonfiniteEvent{});
}

// Values that a float conversion, a text format or an == comparison would change.
const std::vector<std::uint64_t> delicate_doubles = {
    0x0000000000000000, 0x8000000000000000,  // +0, -0
    0x0000000000000001, 0x000FFFFFFFFFFFFF,  // subnormal
    0x7FF0000000000000, 0xFFF0000000000000,  // infinities
    0x7FF8000000000000, 0xFFF8000000000000,  // quiet NaN
    0x7FF4000000000000, 0x7FF0000000000001,  // signalling NaN
    0x7FF8000020000000, 0xFFFFFFFFFFFFFFFF,  // payloads that do and do not fit a float32
    0x3FF0000000000000, 0x3FB999999999999A,  // 1, 0.1
    0x47EFFFFFE0000000, 0x47EFFFFFF0000000,  // the largest float32, and the first that rounds beyond it
    0x36A0000000000000, 0x7FEFFFFFFFFFFFFF,  // the smallest float32, the largest double
};
const std::vector<std::uint32_t> delicate_floats = {0x00000000, 0x80000000, 0x00000001, 0x7F800000,
                                                    0xFF800000, 0x7FC00000, 0x7F800001, 0x7FA00000,
                                                    0xFFFFFFFF, 0x7F7FFFFF, 0x47800000};

TEST(RoundTrip, FloatsBitForBitAlone) {
  for (const auto bits : delicate_doubles) {
    RunInfo run;
    run.budget_percent = std::bit_cast<double>(bits);
    EXPECT_SAME(through_file([&](Writer& writer) { writer.add(run); }).run, run) << std::hex << bits;
  }
}

TEST(RoundTrip, FloatsBitForBitInColumns) {
  std::vector<SeriesPoint> series;
  for (const auto bits : delicate_doubles) {
    SeriesPoint point;
    point.first_step = static_cast<std::int64_t>(series.size());
    point.mean = std::bit_cast<double>(bits);
    series.push_back(point);
  }
  FlightRecord flight;
  std::vector<ScalerUpdate> updates;
  for (const auto bits : delicate_floats) {
    RecentCall call;
    call.order = static_cast<std::int64_t>(flight.calls.size());
    call.absmax = std::bit_cast<float>(bits);
    flight.calls.push_back(call);
    ScalerUpdate update;
    update.step = call.order;
    update.scale_before = call.absmax;
    update.scale_after = std::bit_cast<float>(delicate_floats[delicate_floats.size() - updates.size() - 1]);
    update.found_inf = call.absmax;
    updates.push_back(update);
  }
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(rows(series));
    writer.add(flight);
    writer.add(rows(updates));
  });
  EXPECT_TRUE(equal(trace.series, series));
  EXPECT_SAME(trace.flight_records.at(0), flight);
  EXPECT_TRUE(equal(trace.scaler_updates, updates));
}

TEST(RoundTrip, FloatsBitForBitAsOneValueForAllRows) {
  for (const auto bits : delicate_floats) {
    std::vector<ScalerUpdate> updates(2);
    updates[1].step = 7;  // no successor, so that both are rows
    for (auto& update : updates)
      update.scale_before = std::bit_cast<float>(bits);
    const Trace trace = through_file([&](Writer& writer) { writer.add(rows(updates)); });
    EXPECT_TRUE(equal(trace.scaler_updates, updates)) << std::hex << bits;
  }
}

TEST(RoundTrip, IntegerColumnsOfEveryWidth) {
  const std::vector<std::int64_t> edges = {0,          1,          127,        128,        255,
                                           256,        32767,      32768,      65535,      65536,
                                           2147483647, 2147483648, 4294967295, 4294967296, schema::max_position};
  for (const std::int64_t edge : edges) {
    std::vector<NonfiniteGradient> unsigned_rows(2);
    unsigned_rows[0].step = edge;
    unsigned_rows[1].step = 0;
    std::vector<SiteNumerics> signed_rows(2);
    signed_rows[0].step = edge;
    signed_rows[1].step = -1;
    for (auto& row : unsigned_rows)
      row.parameter = 0;
    for (auto& row : signed_rows)
      row.site = 0;
    const Trace trace = through_file([&](Writer& writer) {
      writer.add(rows(unsigned_rows));
      writer.add(rows(signed_rows));
    });
    EXPECT_TRUE(equal(trace.nonfinite_gradients, unsigned_rows)) << edge;
    EXPECT_TRUE(equal(trace.numerics, signed_rows)) << edge;
  }
  std::vector<ScalerUpdate> updates(3);  // any 32-bit value
  updates[0].growth_interval = std::numeric_limits<std::int32_t>::min();
  updates[1].growth_interval = std::numeric_limits<std::int32_t>::max();
  updates[2].tracker_before = -5;
  StepPattern pattern;
  pattern.id = 0;
  pattern.events.resize(2);
  pattern.events[1].optimizers = std::numeric_limits<std::uint64_t>::max();
  pattern.events[1].flags = std::numeric_limits<std::uint32_t>::max();
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(rows(updates));
    writer.add(pattern);
  });
  EXPECT_TRUE(equal(trace.scaler_updates, updates));
  EXPECT_SAME(trace.patterns.at(0), pattern);
}

TEST(RoundTrip, StringsOfAnyBytes) {
  RunInfo run;
  run.command = {"",        "naïve ∑ 𝛼", std::string("\xFF\xFE\0x", 4), "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80",
                 "\xE2\x82"};
  std::vector<SeriesPoint> series(4);
  series[0].name = "loss";
  series[1].name = "\xFF";
  series[2].name = "";
  series[3].name = "loss";
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(run);
    writer.add(rows(series));
  });
  EXPECT_SAME(trace.run, run);
  EXPECT_TRUE(equal(trace.series, series));
}

TEST(RoundTrip, ALongStringIsCutBetweenCharacters) {
  RunEnd end;
  end.detail = std::string(schema::max_text - 1, 'a') + "∑∑∑";
  const Trace trace = through_file([&](Writer& writer) { writer.add(end); });
  EXPECT_EQ(trace.end.value().detail, std::string(schema::max_text - 1, 'a'));
}

ScalerUpdate regular(std::int64_t step, std::int32_t tracker) {
  return {step, 0, 1024, 1024, tracker, tracker + 1, 0, 2, 0.5, 2000, false};
}

TEST(RoundTrip, RegularScalerUpdatesTakeNoRoom) {
  std::vector<ScalerUpdate> updates;
  for (int step = 0; step < 10'000; ++step)
    updates.push_back(regular(step, step));
  const Folder folder;
  Writer writer;
  ASSERT_TRUE(writer.open(folder.path("t"), Writer::Existing::refuse));
  writer.add(rows(updates));
  EXPECT_LT(writer.bytes_pending(), 300U);
  ASSERT_TRUE(writer.close());
  EXPECT_TRUE(equal(must_read(read_file(folder.path("t"))).scaler_updates, updates));
}

TEST(RoundTrip, IrregularScalerUpdatesKeepTheirBits) {
  // One after another, each breaks the regular order in one field only.
  std::vector<ScalerUpdate> updates;
  std::int64_t step = 0;
  const auto next = [&]() -> ScalerUpdate& {
    for (int i = 0; i < 3; ++i, ++step)
      updates.push_back(regular(step, static_cast<std::int32_t>(step)));
    updates.push_back(regular(step, static_cast<std::int32_t>(step)));
    ++step;
    return updates.back();
  };
  next().step += 1;
  next().scaler = 1;
  next().scale_before = -1024;
  next().scale_after = std::numeric_limits<float>::quiet_NaN();
  next().tracker_before = 0;
  next().tracker_after = 0;
  next().found_inf = 1;
  next().found_inf = -0.0F;
  next().growth_factor = 2.0000000000000004;
  next().backoff_factor = std::nan("");
  next().growth_interval = 1;
  next().assigned = true;
  next();
  updates.push_back(updates.back());
  updates.push_back(regular(step, std::numeric_limits<std::int32_t>::max() - 1));
  updates.push_back(regular(step + 1, std::numeric_limits<std::int32_t>::max() - 1));
  const Trace trace = through_file([&](Writer& writer) { writer.add(rows(updates)); });
  EXPECT_TRUE(equal(trace.scaler_updates, updates));
}

TEST(RoundTrip, ManyRowsBecomeSeveralRecordsAndFrames) {
  std::vector<SiteNumerics> numerics(3000);
  Random random(7, 50);
  for (auto& row : numerics) {
    row = random.make<SiteNumerics>();
    if (row.site < 0) row.site = 0;
    row.stats.exponents.first = -1000;
    row.stats.exponents.counts.assign(1000, 1 + random.below(std::uint64_t{1} << 50));
  }
  const Trace trace = through_file([&](Writer& writer) { writer.add(rows(numerics)); });
  EXPECT_EQ(trace.damage.frames_read, 3U);
  EXPECT_TRUE(equal(trace.numerics, numerics));
}

TEST(RoundTrip, LaterRecordsReplaceEarlierOnes) {
  Site first;
  first.id = 1;
  first.name = "aten::mul";
  first.module = "old";
  Site second;
  second.id = 1;
  second.name = "aten::add";
  const std::vector<SiteTotals> before = {{1, 5, 5, 0, 4}};
  const std::vector<SiteTotals> after = {{1, 9, 9, 0, 8}};
  RecorderStatus status;
  status.steps = 4;
  status.events_dropped = 3;
  RecorderStatus status_after;
  status_after.steps = 8;
  HiddenRegion region{"torch.compile", "forward", 1, 10, 0};
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(first);
    writer.add(rows(before));
    writer.add(status);
    writer.add(region);
    writer.add(HiddenRegion{"torch.compile", "backward", 2, 20, 0});
    EXPECT_TRUE(writer.flush());
    writer.add(second);
    writer.add(rows(after));
    writer.add(status_after);
    region.calls = 7;
    writer.add(region);
  });
  ASSERT_EQ(trace.sites.size(), 2U);
  EXPECT_SAME(trace.sites[1], second);
  EXPECT_EQ(trace.totals[1].calls, 9);
  EXPECT_SAME(trace.status, status_after);
  ASSERT_EQ(trace.hidden_regions.size(), 2U);
  EXPECT_EQ(trace.hidden_regions[0].calls, 7);
  EXPECT_EQ(trace.hidden_regions[1].name, "backward");
}

TEST(RoundTrip, GapsAreFilledSoThatIdsAreIndices) {
  Site site;
  site.id = 3;
  site.name = "aten::mul";
  const std::vector<SiteTotals> totals = {{5, 2}};
  std::vector<GradientWindow> gradients(1);
  gradients[0].parameter = 2;
  const std::vector<StepRun> runs = {{0, 4, 1}};
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(site);
    writer.add(rows(totals));
    writer.add(rows(gradients));
    writer.add(rows(runs));
  });
  ASSERT_EQ(trace.sites.size(), 6U);
  ASSERT_EQ(trace.totals.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(trace.sites[i].id, static_cast<std::int64_t>(i));
    EXPECT_EQ(trace.totals[i].site, static_cast<std::int64_t>(i));
    EXPECT_EQ(trace.totals[i].calls, i == 5 ? 2 : 0);
    EXPECT_EQ(trace.sites[i].name, i == 3 ? "aten::mul" : "");
  }
  EXPECT_EQ(trace.parameters.size(), 3U);
  EXPECT_EQ(trace.parameters.at(1).id, 1);
  EXPECT_EQ(trace.patterns.size(), 2U);
  EXPECT_EQ(trace.steps(), 4);
}

TEST(RoundTrip, OrderIsRestored) {
  const std::vector<StepRun> runs = {{20, 5, 1}, {0, 10, 0}, {10, 10, 0}};
  std::vector<GradientWindow> gradients(3);
  gradients[0].parameter = 1;
  gradients[0].first_step = 4;
  gradients[1].parameter = 0;
  gradients[1].first_step = 4;
  gradients[2].parameter = 5;
  gradients[2].first_step = 3;
  std::vector<NonfiniteEvent> events(2);
  events[0].order = 9;
  events[1].order = 2;
  const Trace trace = through_file([&](Writer& writer) {
    writer.add(rows(runs));
    writer.add(rows(gradients));
    for (const auto& event : events)
      writer.add(event);
  });
  ASSERT_EQ(trace.step_runs.size(), 2U);  // neighbours of one pattern are one run
  EXPECT_EQ(trace.step_runs[0].count, 20);
  EXPECT_EQ(trace.step_runs[1].first_step, 20);
  EXPECT_EQ(trace.steps(), 25);
  EXPECT_EQ(trace.gradients.at(0).parameter, 5);
  EXPECT_EQ(trace.gradients.at(1).parameter, 0);
  EXPECT_EQ(trace.gradients.at(2).parameter, 1);
  EXPECT_EQ(trace.nonfinite_events.at(0).order, 2);
}

TEST(RoundTrip, SizesByKindAddUpToTheContent) {
  const SmallTrace small = small_trace();
  const Trace trace = must_read(small.bytes);
  std::uint64_t bytes = 0;
  for (const auto& size : trace.sizes)
    bytes += size.bytes;
  EXPECT_EQ(bytes, trace.content_bytes);
  const auto sites =
      std::find_if(trace.sizes.begin(), trace.sizes.end(), [](const KindSize& size) { return size.kind == "site"; });
  ASSERT_NE(sites, trace.sizes.end());
  EXPECT_EQ(sites->records, 3U);
  const auto updates = std::find_if(trace.sizes.begin(), trace.sizes.end(),
                                    [](const KindSize& size) { return size.kind == "scaler_updates"; });
  ASSERT_NE(updates, trace.sizes.end());
  EXPECT_EQ(updates->records, 10U);
}

}  // namespace
}  // namespace ampscope::trace::test
