#include "trace/describe.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trace/files.h"

namespace ampscope::trace::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string value(const std::vector<Fact>& facts, const std::string& label) {
  const auto found = std::find_if(facts.begin(), facts.end(), [&](const Fact& fact) { return fact.label == label; });
  return found == facts.end() ? "(absent)" : found->value;
}

TEST(Describe, AWholeTrace) {
  const SmallTrace small = small_trace();
  Trace trace = must_read(small.bytes);
  trace.exit = ExitStatus{0};
  trace.run.level = Level::full;
  trace.run.budget_percent = 2;
  trace.run.rank = 0;
  trace.run.world_size = 4;
  trace.run.start_time_ns = 1'700'000'000'000'000'000;
  trace.run.tool_version = "0.1.0";
  trace.status.elapsed_ns = 200'000'000'000;
  trace.status.own_time_ns = 3'000'000'000;
  trace.status.events_seen = 1'234'567;
  const Description text = describe(trace);
  EXPECT_EQ(value(text.file, "file"), "test.ampscope");
  EXPECT_EQ(value(text.file, "format"), "1.0");
  EXPECT_EQ(value(text.file, "written by"), "ampscope 0.1.0");
  EXPECT_THAT(value(text.file, "size"), HasSubstr(" in 4 frames, "));
  EXPECT_EQ(value(text.run, "command"), "python train.py");
  EXPECT_EQ(value(text.run, "started"), "2023-11-14 22:13:20 UTC");
  EXPECT_EQ(value(text.run, "rank"), "0 of 4 processes");
  EXPECT_EQ(value(text.run, "ended"), "exit at 2023-11-14 22:13:20 UTC; exit status 0");
  EXPECT_EQ(value(text.run, "processor"), "(absent)");
  EXPECT_EQ(value(text.contents, "steps"), "10 steps in 1 pattern");
  EXPECT_EQ(value(text.contents, "operators"), "3 sites");
  EXPECT_EQ(value(text.contents, "parameters"), "3 parameters");
  EXPECT_EQ(value(text.contents, "optimizers"), "SGD");
  EXPECT_EQ(value(text.contents, "scalers"), "torch.amp.GradScaler, 10 updates");
  EXPECT_EQ(value(text.recorder, "level"), "full, budget 2%");
  EXPECT_EQ(value(text.recorder, "callbacks"), "1,234,567 events");
  EXPECT_EQ(value(text.recorder, "own time"), "3 s of 3 min 20 s (1.5%), estimated");
  EXPECT_THAT(text.lost, IsEmpty());
  ASSERT_FALSE(text.sizes.empty());
  EXPECT_TRUE(std::is_sorted(text.sizes.begin(), text.sizes.end(),
                             [](const KindSize& a, const KindSize& b) { return a.bytes > b.bytes; }));
}

TEST(Describe, NamesTheCallsBeforeAnAnomaly) {
  Trace trace;
  for (const char* name : {"aten::mul", "aten::exp"}) {
    trace.sites.emplace_back();
    trace.sites.back().name = name;
  }
  FlightRecord record;
  record.step = 29;
  record.calls = {{.order = 4, .step = 29, .site = 0, .absmax = 90, .nonfinite = false},
                  {.order = 5, .step = 29, .site = 7, .absmax = NAN, .nonfinite = false},
                  {.order = 6, .step = 29, .site = 1, .absmax = 2, .nonfinite = true}};
  trace.flight_records.push_back(record);
  EXPECT_EQ(value(describe(trace).contents, "flight recorder"),
            "3 calls up to step 29, the last: aten::mul (up to 90), unknown, aten::exp (not finite)");
}

TEST(Describe, ATruncatedTraceSaysWhatWasLost) {
  const SmallTrace small = small_trace();
  const Description text = describe(must_read(small.bytes.substr(0, small.bytes.size() - 3)));
  const std::size_t lost = small.bytes.size() - 3 - small.frame_ends[2];
  EXPECT_THAT(text.lost,
              ElementsAre(byte_text(lost) + " of the file, in 1 place, could not be read (byte " +
                              std::to_string(small.frame_ends[2]) + " to the end is an incomplete frame)",
                          "the file ends inside a frame: the process was killed while it wrote, the disk was full, or "
                          "the trace is still being written",
                          "the process did not say how it ended: it was killed, or it is still running"));
}

TEST(Describe, WhatTheRecorderAndTheReaderLeftOut) {
  Trace trace;
  trace.end = RunEnd{"exit", "", 0};
  trace.status.events_dropped = 1;
  trace.status.sites_dropped = 2000;
  trace.status.switched_off_because = "the disk is full";
  trace.status.switched_off_at_step = 17;
  trace.damage.records_skipped = 3;
  trace.damage.records_damaged = 2;
  trace.damage.reason = "a record of kind \"site\" has a value that is out of range";
  EXPECT_THAT(
      describe(trace).lost,
      ElementsAre("2 contradictions in the records; what was wrong was left out (a record of kind \"site\" has a value "
                  "that is out of range)",
                  "3 records of a kind that this release does not know; a newer ampscope reads them",
                  "1 event came faster than the recorder could take them and were dropped",
                  "2,000 operator sites did not fit in the recorder's table",
                  "the recorder switched itself off at step 17: the disk is full"));
}

TEST(Describe, Bytes) {
  EXPECT_EQ(byte_text(0), "0 B");
  EXPECT_EQ(byte_text(1023), "1023 B");
  EXPECT_EQ(byte_text(1024), "1.0 KiB");
  EXPECT_EQ(byte_text(1536), "1.5 KiB");
  EXPECT_EQ(byte_text(20 << 20), "20 MiB");
  EXPECT_EQ(byte_text((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(byte_text(std::uint64_t{3} << 40), "3.0 TiB");
}

}  // namespace
}  // namespace ampscope::trace::test
