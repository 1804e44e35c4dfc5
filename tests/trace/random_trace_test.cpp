// Random traces come back as they were.

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"
#include "tests/trace/round_trip.h"

namespace ampscope::trace::test {
namespace {

template <class T>
std::vector<T> random_rows(Random& random) {
  std::vector<T> records(random.below(2) == 0 ? random.below(5) : random.below(200));
  for (auto& record : records)
    record = random.make<T>();
  return records;
}

template <class T>
std::vector<T> random_table(Random& random, std::int64_t ids) {
  std::vector<T> records(static_cast<std::size_t>(ids));
  for (std::int64_t id = 0; id < ids; ++id) {
    records[static_cast<std::size_t>(id)] = random.make<T>();
    records[static_cast<std::size_t>(id)].id = id;
  }
  return records;
}

/// A trace in the form that a reader gives it.
Trace random_trace(std::uint64_t seed) {
  constexpr std::int64_t ids = 7;
  Random random(seed, ids - 1);
  Trace trace;
  trace.run = random.make<RunInfo>();
  trace.sites = random_table<Site>(random, ids);
  for (auto& site : trace.sites)
    site.parent = site.id > 0 && random.below(2) == 0 ? site.id - 1 : none;
  trace.parameters = random_table<Parameter>(random, ids);
  trace.optimizers = random_table<Optimizer>(random, ids);
  trace.scalers = random_table<Scaler>(random, ids);
  trace.schedules = random_table<Schedule>(random, ids);
  trace.patterns = random_table<StepPattern>(random, ids);
  for (std::int64_t id = 0; id < ids; ++id) {
    trace.totals.push_back(random.make<SiteTotals>());
    trace.totals.back().site = id;
  }
  std::int64_t step = 0;
  for (std::uint64_t i = random.below(20); i > 0; --i) {
    StepRun run{step + static_cast<std::int64_t>(random.below(3)), 1 + static_cast<std::int64_t>(random.below(50)),
                static_cast<std::int64_t>(random.below(ids))};
    if (!trace.step_runs.empty() && trace.step_runs.back().pattern == run.pattern)
      run.pattern = (run.pattern + 1) % ids;
    step = run.first_step + run.count;
    trace.step_runs.push_back(run);
  }
  for (std::uint64_t i = random.below(100); i > 0; --i) {
    ScalerUpdate update = random.make<schema::ScalerRun>();
    trace.scaler_updates.push_back(update);
    for (std::uint64_t regulars = random.below(4); regulars > 0; --regulars) {
      update = schema::successor(update);
      if (update.step <= schema::max_position) trace.scaler_updates.push_back(update);
    }
  }
  const auto owned = [](std::int64_t& owner) { owner = std::max<std::int64_t>(owner, 0); };
  trace.gradients = random_rows<GradientWindow>(random);
  for (auto& window : trace.gradients)
    owned(window.parameter);
  std::stable_sort(trace.gradients.begin(), trace.gradients.end(), [](const auto& a, const auto& b) {
    return a.first_step != b.first_step ? a.first_step < b.first_step : a.parameter < b.parameter;
  });
  trace.nonfinite_gradients = random_rows<NonfiniteGradient>(random);
  for (auto& gradient : trace.nonfinite_gradients)
    owned(gradient.parameter);
  trace.numerics = random_rows<SiteNumerics>(random);
  for (auto& numerics : trace.numerics)
    owned(numerics.site);
  trace.rounding_errors = random_rows<RoundingErrors>(random);
  for (auto& errors : trace.rounding_errors)
    owned(errors.site);
  trace.writes = random_rows<WriteSample>(random);
  for (auto& write : trace.writes)
    owned(write.site);
  trace.nonfinite_events = random_rows<NonfiniteEvent>(random);
  std::stable_sort(trace.nonfinite_events.begin(), trace.nonfinite_events.end(),
                   [](const auto& a, const auto& b) { return a.order < b.order; });
  trace.flight_records = random_rows<FlightRecord>(random);
  trace.series = random_rows<SeriesPoint>(random);
  trace.round_trips = random_rows<RoundTrip>(random);
  trace.hidden_regions.resize(random.below(4));
  for (std::size_t i = 0; i < trace.hidden_regions.size(); ++i) {
    trace.hidden_regions[i] = random.make<HiddenRegion>();
    trace.hidden_regions[i].name += std::to_string(i);
  }
  trace.status = random.make<RecorderStatus>();
  if (random.below(2) == 0) trace.end = random.make<RunEnd>();
  if (random.below(2) == 0) trace.exit = random.make<ExitStatus>();
  return trace;
}

/// Writes records in pieces, with frames ending anywhere.
class Scatter {
 public:
  Scatter(Writer& writer, std::uint64_t seed) : writer_(writer), random_(seed, 1) {}
  template <class T>
  void one(const T& record) {
    writer_.add(record);
    if (random_.below(3) == 0) {
      EXPECT_TRUE(writer_.flush());
    }
  }
  template <class T>
  void each(const std::vector<T>& records) {
    for (const auto& record : records)
      one(record);
  }
  template <class T>
  void columns(const std::vector<T>& records) {
    std::span<const T> left = records;
    while (!left.empty()) {
      const auto part = left.first(1 + random_.below(left.size()));
      one(part);
      left = left.subspan(part.size());
    }
  }

 private:
  Writer& writer_;
  Random random_;
};

TEST(RoundTrip, RandomTraces) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const Trace expected = random_trace(seed);
    const Trace trace = through_file([&](Writer& writer) {
      Scatter scatter(writer, seed);
      scatter.one(expected.run);
      scatter.each(expected.sites);
      scatter.columns(expected.totals);
      scatter.each(expected.parameters);
      scatter.each(expected.optimizers);
      scatter.each(expected.scalers);
      scatter.each(expected.schedules);
      scatter.each(expected.patterns);
      scatter.columns(expected.step_runs);
      scatter.columns(expected.scaler_updates);
      scatter.columns(expected.gradients);
      scatter.columns(expected.nonfinite_gradients);
      scatter.columns(expected.numerics);
      scatter.columns(expected.rounding_errors);
      scatter.columns(expected.writes);
      scatter.each(expected.nonfinite_events);
      scatter.each(expected.flight_records);
      scatter.columns(expected.series);
      scatter.each(expected.hidden_regions);
      scatter.each(expected.round_trips);
      scatter.one(expected.status);
      if (expected.end) scatter.one(*expected.end);
      if (expected.exit) scatter.one(*expected.exit);
    });
    EXPECT_SAME(trace.run, expected.run);
    EXPECT_TRUE(equal(trace.sites, expected.sites));
    EXPECT_TRUE(equal(trace.totals, expected.totals));
    EXPECT_TRUE(equal(trace.parameters, expected.parameters));
    EXPECT_TRUE(equal(trace.optimizers, expected.optimizers));
    EXPECT_TRUE(equal(trace.scalers, expected.scalers));
    EXPECT_TRUE(equal(trace.schedules, expected.schedules));
    EXPECT_TRUE(equal(trace.patterns, expected.patterns));
    EXPECT_TRUE(equal(trace.step_runs, expected.step_runs));
    EXPECT_TRUE(equal(trace.scaler_updates, expected.scaler_updates));
    EXPECT_TRUE(equal(trace.gradients, expected.gradients));
    EXPECT_TRUE(equal(trace.nonfinite_gradients, expected.nonfinite_gradients));
    EXPECT_TRUE(equal(trace.numerics, expected.numerics));
    EXPECT_TRUE(equal(trace.rounding_errors, expected.rounding_errors));
    EXPECT_TRUE(equal(trace.writes, expected.writes));
    EXPECT_TRUE(equal(trace.nonfinite_events, expected.nonfinite_events));
    EXPECT_TRUE(equal(trace.flight_records, expected.flight_records));
    EXPECT_TRUE(equal(trace.series, expected.series));
    EXPECT_TRUE(equal(trace.hidden_regions, expected.hidden_regions));
    EXPECT_TRUE(equal(trace.round_trips, expected.round_trips));
    EXPECT_SAME(trace.status, expected.status);
    ASSERT_EQ(trace.end.has_value(), expected.end.has_value());
    if (expected.end) {
      EXPECT_SAME(*trace.end, *expected.end);
    }
    ASSERT_EQ(trace.exit.has_value(), expected.exit.has_value());
    if (expected.exit) {
      EXPECT_SAME(*trace.exit, *expected.exit);
    }
  }
}

}  // namespace
}  // namespace ampscope::trace::test
