// Input made to hurt: it must not crash the reader, cost it more than its limits, or make it say something that is not
// so.

#include <random>

#include <gtest/gtest.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"
#include "tests/trace/soundness.h"
#include "trace/cbor.h"
#include "trace/encode.h"

namespace ampscope::trace::test {
namespace {

template <class T>
std::string single(const T& record) {
  std::string out;
  encode_record(out, record);
  return out;
}

template <class T>
std::string columns(const std::vector<T>& records) {
  std::string out;
  encode_columns(out, std::span<const T>(records));
  return out;
}

Trace read_records(const std::string& content) {
  return must_read(header_bytes() + frame_bytes(content));
}

void expect_sound(const Trace& trace) {
  ASSERT_EQ(unsound(trace), "");
}

TEST(Hostile, IdsBeyondReasonAreLeftOut) {
  for (const std::int64_t id : {std::int64_t{1} << 60, schema::max_id + 1, schema::max_id, std::int64_t{1} << 21}) {
    SCOPED_TRACE(id);
    Site site;
    site.id = id;
    Parameter parameter;
    parameter.id = 0;
    parameter.optimizer = id;
    NonfiniteEvent event;
    event.site = id;
    std::vector<GradientWindow> gradients(2);
    gradients[0].parameter = id;
    gradients[1].parameter = 0;
    std::vector<SiteTotals> totals(1);
    totals[0].site = id;
    const Trace trace =
        read_records(single(site) + single(parameter) + single(event) + columns(gradients) + columns(totals));
    expect_sound(trace);
    EXPECT_LT(trace.sites.size(), 1U << 18);
    EXPECT_GE(trace.damage.records_damaged, 1U);
    EXPECT_EQ(trace.parameters.at(0).id, 0);
    ASSERT_EQ(trace.nonfinite_events.size(), 1U);
    ASSERT_GE(trace.gradients.size(), 1U);
    EXPECT_EQ(trace.gradients[0].parameter, 0);
  }
}

TEST(Hostile, NegativeAndHugeNumbersAreLeftOut) {
  RecorderStatus status;
  status.events_seen = -5;
  status.steps = std::numeric_limits<std::int64_t>::max();
  status.own_time_ns = 17;
  std::vector<SiteTotals> totals(2);
  totals[0].site = 0;
  totals[0].calls = -1;
  totals[0].bytes = std::numeric_limits<std::int64_t>::max();
  totals[0].elements = 12;
  totals[1].site = 1;
  totals[1].calls = 3;
  std::vector<StepRun> runs = {{schema::max_position, schema::max_position, 0}, {-3, 5, 0}, {0, -2, 0}, {1, 2, 0}};
  std::vector<SiteNumerics> numerics(1);
  numerics[0].site = 0;
  numerics[0].stats.count = std::numeric_limits<std::uint64_t>::max();
  numerics[0].stats.nan = 4;
  const Trace trace = read_records(single(status) + columns(totals) + columns(runs) + columns(numerics));
  expect_sound(trace);
  EXPECT_EQ(trace.status.events_seen, 0);
  EXPECT_EQ(trace.status.steps, 0);
  EXPECT_EQ(trace.status.own_time_ns, 17);
  EXPECT_EQ(trace.totals.at(0).calls, 0);
  EXPECT_EQ(trace.totals[0].bytes, 0);
  EXPECT_EQ(trace.totals[0].elements, 12);
  EXPECT_EQ(trace.totals.at(1).calls, 3);
  EXPECT_EQ(trace.numerics.at(0).stats.count, 0U);
  EXPECT_EQ(trace.numerics[0].stats.nan, 4U);
  EXPECT_GE(trace.damage.records_damaged, 4U);
  EXPECT_NE(trace.damage.reason.find("out of range"), std::string::npos);
}

TEST(Hostile, OverlappingStepRunsAreNotCountedTwice) {
  const std::vector<StepRun> runs = {{0, 10, 0}, {5, 10, 1}, {6, 2, 2}, {0, 3, 3}};
  const Trace trace = read_records(columns(runs));
  expect_sound(trace);
  EXPECT_EQ(trace.steps(), 15);
  EXPECT_TRUE(trace.damage.any());
}

TEST(Hostile, CirclesOfSitesAreBroken) {
  std::string content;
  for (std::int64_t id = 0; id < 6; ++id) {
    Site site;
    site.id = id;
    site.parent = id == 5 ? 5 : (id + 1) % 5;
    content += single(site);
  }
  const Trace trace = read_records(content);
  expect_sound(trace);
  EXPECT_EQ(trace.damage.records_damaged, 2U);
}

TEST(Hostile, HistogramsOutsideOfFloat64AreLeftOut) {
  std::vector<SiteNumerics> numerics(5);
  for (auto& row : numerics)
    row.site = 0;
  numerics[0].stats.exponents = {std::numeric_limits<int>::max(), {1}};
  numerics[1].stats.exponents = {std::numeric_limits<int>::min(), {1, 2}};
  numerics[2].stats.exponents = {1000, std::vector<std::uint64_t>(30, 1)};
  numerics[3].stats.exponents = {-10, {0, 0, 5, 0, 6, 0}};
  numerics[4].stats.exponents = {-10, {0, 0}};
  NonfiniteEvent event;
  event.inputs.resize(1);
  event.inputs[0].stats.exponents = numerics[2].stats.exponents;
  const Trace trace = read_records(columns(numerics) + single(event));
  expect_sound(trace);
  ASSERT_EQ(trace.numerics.size(), 5U);
  for (const std::size_t i : {0, 1, 2, 4})
    EXPECT_TRUE(trace.numerics[i].stats.exponents.empty()) << i;
  EXPECT_EQ(trace.numerics[3].stats.exponents.first, -8);
  EXPECT_EQ(trace.numerics[3].stats.exponents.counts, (std::vector<std::uint64_t>{5, 0, 6}));
  EXPECT_TRUE(trace.nonfinite_events.at(0).inputs.at(0).stats.exponents.empty());
}

TEST(Hostile, ColumnsOfDifferentLengthsAreDamage) {
  const auto column = [](std::size_t size) {
    std::string out;
    cbor::Encoder encoder(out);
    const std::vector<std::uint8_t> values(size, 1);
    encoder.typed_array(cbor::ArrayTag::uint8, values.data(), size);
    return out;
  };
  const auto record = [&](std::string_view kind, const std::vector<std::pair<std::string, std::string>>& fields) {
    std::string out;
    cbor::Encoder encoder(out);
    encoder.array(2);
    encoder.text(kind);
    encoder.map(fields.size());
    for (const auto& [name, value] : fields) {
      encoder.text(name);
      out += value;
    }
    return out;
  };
  const std::string key = column(3);
  const std::string odd = std::string("\xD8\x45\x43\1\2\3", 6);  // uint16 in three bytes
  for (const auto& content : {
           record("totals", {{"site", key}, {"calls", column(2)}}),
           record("totals", {{"site", key}, {"calls", odd}}),
           record("series", {{"first_step", key}, {"name", std::string("\x82\x81\x61\x61", 4) + column(2)}}),
           record("numerics", {{"site", key},
                               {"stats.exponents.first", column(3)},
                               {"stats.exponents.size", column(3)},
                               {"stats.exponents.counts", column(2)}}),
           record("numerics", {{"site", key},
                               {"stats.exponents.first", column(3)},
                               {"stats.exponents.size", column(3)},
                               {"stats.exponents.counts", column(4)}}),
           record("numerics", {{"site", key}, {"stats.exponents.counts", column(3)}}),
       }) {
    const Trace trace = read_records(content);
    expect_sound(trace);
    EXPECT_EQ(trace.damage.records_damaged, 1U);
    EXPECT_TRUE(trace.numerics.empty());
    EXPECT_TRUE(trace.series.empty());
  }
  // An index beyond the dictionary costs that row its name only.
  const Trace trace =
      read_records(record("series", {{"first_step", key}, {"name", std::string("\x82\x81\x61\x61", 4) + key}}));
  EXPECT_EQ(trace.series.size(), 3U);
  EXPECT_EQ(trace.series.at(0).name, "");
  EXPECT_EQ(trace.damage.records_damaged, 1U);
}

TEST(Hostile, NestingBeyondTheLimitEndsItsFrameOnly) {
  const std::string exit = single(ExitStatus{2});
  for (const int with : {0x81, 0xA1, 0xC1}) {
    std::string nested(100'000, static_cast<char>(with));
    nested.push_back(0);
    const Trace trace = must_read(header_bytes() + frame_bytes(exit + nested) + frame_bytes(exit));
    EXPECT_EQ(trace.damage.frames_read, 2U);
    EXPECT_EQ(trace.damage.records_read, 2U);
    EXPECT_EQ(trace.damage.records_damaged, 1U);
  }
}

TEST(Hostile, AFrameThatClaimsTooMuchIsNotAllocated) {
  // A frame header with a content size of 2^63 bytes, then of 65 MiB that are really there.
  const std::string claim("\x28\xB5\x2F\xFD\xE4\0\0\0\0\0\0\0\x80\1\0\0\0\0\0\0", 20);
  EXPECT_EQ(must_fail(header_bytes() + claim).kind, ReadErrorKind::damaged);
  const std::string exit = frame_bytes(single(ExitStatus{2}));
  const Trace trace = must_read(header_bytes() + frame_bytes(std::string(std::size_t{65} << 20, '\0')) + exit);
  EXPECT_EQ(trace.damage.frames_read, 1U);
  EXPECT_EQ(trace.exit.value().status, 2);
}

TEST(Hostile, ZipBombsStopAtTheirBudget) {
  // 4 MiB of content from 400 bytes of file, again and again.
  const std::string bomb = frame_bytes(std::string(std::size_t{4} << 20, '\0'));
  ASSERT_LT(bomb.size(), 1024U);
  std::string bytes = header_bytes() + frame_bytes(single(ExitStatus{2}));
  for (int i = 0; i < 100; ++i)
    bytes += bomb;
  ReadLimits limits;
  limits.memory_base = std::uint64_t{8} << 20;
  const auto result = read_trace_bytes(bytes, "test.ampscope", limits);
  const Trace& trace = std::get<Trace>(result);
  EXPECT_LT(trace.damage.frames_read, 5U);
  EXPECT_NE(trace.damage.reason, "");
  EXPECT_EQ(trace.damage.bytes_read + trace.damage.bytes_damaged, bytes.size());
  EXPECT_EQ(trace.exit.value().status, 2);
}

TEST(Hostile, ABombOfRowsStopsAtItsBudget) {
  // 2^24 rows of statistics, 200 bytes each in memory, from a column of zeros.
  std::string content;
  cbor::Encoder encoder(content);
  encoder.array(2);
  encoder.text("numerics");
  encoder.map(1);
  encoder.text("site");
  const std::string zeros(std::size_t{1} << 24, '\0');
  encoder.typed_array(cbor::ArrayTag::uint8, zeros.data(), zeros.size());
  const Trace trace = read_records(content + single(ExitStatus{2}));
  EXPECT_TRUE(trace.numerics.empty());
  EXPECT_EQ(trace.damage.records_damaged, 1U);
  EXPECT_NE(trace.damage.reason.find("memory"), std::string::npos);
  EXPECT_EQ(trace.exit.value().status, 2);
}

TEST(Hostile, ABombOfEmptyListsStopsAtItsBudget) {
  // A million tensors, one byte each.
  std::string content;
  cbor::Encoder encoder(content);
  encoder.array(2);
  encoder.text("nonfinite_event");
  encoder.map(1);
  encoder.text("inputs");
  encoder.array(1'000'000);
  content += std::string(1'000'000, static_cast<char>(0xA0));
  const Trace trace = read_records(content + single(ExitStatus{2}));
  EXPECT_TRUE(trace.nonfinite_events.empty());
  EXPECT_EQ(trace.exit.value().status, 2);
}

TEST(Hostile, ABombOfScalerUpdatesStopsAtItsLimit) {
  std::vector<schema::ScalerRun> runs(3);
  runs[0].repeat = 9;
  runs[1].repeat = schema::max_count;
  runs[2].repeat = 3;
  const std::string bytes = header_bytes() + frame_bytes(columns(runs) + single(ExitStatus{2}));
  ReadLimits limits;
  limits.scaler_updates = 1000;
  const auto result = read_trace_bytes(bytes, "test.ampscope", limits);
  const Trace& trace = std::get<Trace>(result);
  EXPECT_EQ(trace.scaler_updates.size(), 10U);
  EXPECT_EQ(trace.damage.records_damaged, 1U);
  EXPECT_EQ(trace.exit.value().status, 2);
}

TEST(Hostile, ManyPlacesThatLookLikeFramesCostABoundedSearch) {
  // Each is the head of a frame of 64 MiB whose empty blocks go on to the end of the file: with a walk from each the
  // search would be quadratic.
  const std::string place("\x28\xB5\x2F\xFD\xA4\0\0\0\x04", 9);
  std::string bytes = header_bytes() + frame_bytes(single(ExitStatus{2}));
  for (int i = 0; i < 100'000; ++i)
    bytes += place + std::string(9, '\0');
  bytes += std::string(3'000'000, '\0');
  const Trace trace = must_read(bytes);
  EXPECT_EQ(trace.damage.frames_read, 1U);
  EXPECT_EQ(trace.damage.bytes_damaged, bytes.size() - trace.damage.bytes_read);
}

// ---- mutations
// -------------------------------------------------------------------------------------------------------

/// Changes bytes as a fuzzer does: flips, sets to interesting values, copies, deletes and inserts.
std::string mutate(std::string bytes, std::mt19937& random) {
  const auto place = [&] { return bytes.empty() ? 0 : random() % bytes.size(); };
  for (auto changes = 1 + random() % 6; changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = place();
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes[at] = "\x00\x01\x7F\x80\xFF\x9B\xBB\x5B\xF9\xFB\xD8"[random() % 11];
        break;
      case 3:
        bytes.erase(at, 1 + random() % 8);
        break;
      case 4:
        bytes.insert(at, bytes.substr(place(), random() % 32));
        break;
      default:
        bytes.replace(at, std::min<std::size_t>(8, bytes.size() - at), std::string(8, static_cast<char>(random())));
        break;
    }
  }
  return bytes;
}

TEST(Hostile, MutatedRecordsNeverBreakTheReader) {
  Filler filler;
  std::string content = single(filler.make<RunInfo>()) + single(filler.make<Site>()) +
                        single(filler.make<Parameter>()) + single(filler.make<StepPattern>()) +
                        single(filler.make<NonfiniteEvent>()) + single(filler.make<FlightRecord>()) +
                        single(filler.make<RoundTrip>()) + single(filler.make<RecorderStatus>());
  content += columns(std::vector<GradientWindow>{filler.make<GradientWindow>(), filler.make<GradientWindow>()});
  content += columns(std::vector<SiteTotals>{filler.make<SiteTotals>(), filler.make<SiteTotals>()});
  content += columns(std::vector<SeriesPoint>{filler.make<SeriesPoint>(), filler.make<SeriesPoint>()});
  content += columns(std::vector<StepRun>{filler.make<StepRun>(), filler.make<StepRun>()});
  schema::ScalerRun run = filler.make<schema::ScalerRun>();
  run.repeat = 3;
  content += columns(std::vector<schema::ScalerRun>{run});
  ReadLimits limits;
  limits.scaler_updates = 10'000;
  limits.memory_base = std::uint64_t{1} << 20;
  std::mt19937 random(11);
  std::uint64_t read = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string bytes = header_bytes() + frame_bytes(mutate(content, random));
    const auto result = read_trace_bytes(bytes, "test.ampscope", limits);
    ASSERT_TRUE(std::holds_alternative<Trace>(result));
    const Trace& trace = std::get<Trace>(result);
    expect_sound(trace);
    if (testing::Test::HasFatalFailure()) FAIL() << "mutation " << i;
    read += trace.damage.records_read;
  }
  EXPECT_GT(read, 5000U * 4);  // the mutations leave most records readable, so the decoders were really used
}

TEST(Hostile, MutatedFilesNeverBreakTheReader) {
  const SmallTrace small = small_trace();
  std::mt19937 random(12);
  std::uint64_t traces = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string bytes = mutate(small.bytes, random);
    const auto result = read_trace_bytes(bytes, "test.ampscope");
    if (const auto* trace = std::get_if<Trace>(&result)) {
      ++traces;
      expect_sound(*trace);
      if (testing::Test::HasFatalFailure()) FAIL() << "mutation " << i;
      EXPECT_EQ(trace->damage.bytes_read + trace->damage.bytes_damaged, bytes.size());
    }
  }
  EXPECT_GT(traces, 2500U);
}

}  // namespace
}  // namespace ampscope::trace::test
