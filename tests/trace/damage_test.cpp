// What is left of a trace that was cut, hit or continued.

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"
#include "trace/cbor.h"
#include "trace/encode.h"

namespace ampscope::trace::test {
namespace {

/// The trace that only the first `frames` frames of `small` make.
Trace first_frames(const SmallTrace& small, std::size_t frames) {
  return must_read(small.bytes.substr(0, small.frame_ends.at(frames - 1)));
}

void expect_same_contents(const Trace& trace, const Trace& expected) {
  EXPECT_TRUE(equal(trace.run, expected.run));
  EXPECT_TRUE(equal(trace.sites, expected.sites));
  EXPECT_TRUE(equal(trace.totals, expected.totals));
  EXPECT_TRUE(equal(trace.parameters, expected.parameters));
  EXPECT_TRUE(equal(trace.patterns, expected.patterns));
  EXPECT_TRUE(equal(trace.step_runs, expected.step_runs));
  EXPECT_TRUE(equal(trace.scaler_updates, expected.scaler_updates));
  EXPECT_TRUE(equal(trace.gradients, expected.gradients));
  EXPECT_TRUE(equal(trace.status, expected.status));
  EXPECT_EQ(trace.end.has_value(), expected.end.has_value());
  EXPECT_EQ(trace.damage.frames_read, expected.damage.frames_read);
  EXPECT_EQ(trace.damage.records_read, expected.damage.records_read);
}

TEST(Damage, AFileCutAtAnyByteIsReadUpToItsLastCompleteFrame) {
  const SmallTrace small = small_trace();
  ASSERT_EQ(small.frame_ends.size(), 4U);
  std::vector<Trace> complete;
  for (std::size_t frames = 1; frames <= 4; ++frames) {
    complete.push_back(first_frames(small, frames));
    EXPECT_FALSE(complete.back().damage.any());
  }
  for (std::size_t size = 0; size < small.bytes.size(); ++size) {
    SCOPED_TRACE(size);
    const std::string cut = small.bytes.substr(0, size);
    const auto frames = static_cast<std::size_t>(
        std::count_if(small.frame_ends.begin(), small.frame_ends.end(), [&](std::size_t end) { return end <= size; }));
    if (frames == 0) {
      const ReadError error = must_fail(cut);
      EXPECT_EQ(error.kind, size == 0 ? ReadErrorKind::not_a_trace : ReadErrorKind::damaged);
      continue;
    }
    const std::size_t end = small.frame_ends[frames - 1];
    const Trace trace = must_read(cut);
    expect_same_contents(trace, complete[frames - 1]);
    EXPECT_EQ(trace.damage.truncated, size != end);
    EXPECT_EQ(trace.damage.any(), size != end);
    EXPECT_EQ(trace.damage.bytes_total, size);
    EXPECT_EQ(trace.damage.bytes_read, end);
    EXPECT_EQ(trace.damage.bytes_damaged, size - end);
    EXPECT_EQ(trace.damage.regions_damaged, size == end ? 0U : 1U);
    EXPECT_EQ(trace.damage.records_damaged, 0U);
    EXPECT_EQ(trace.damage.reason,
              size == end ? "" : "byte " + std::to_string(end) + " to the end is an incomplete frame");
  }
}

TEST(Damage, AnExitStatusBehindACutAtAnyByteIsFound) {
  const SmallTrace small = small_trace();
  std::string exit_record;
  encode_record(exit_record, ExitStatus{137});
  const std::string exit_frame = frame_bytes(exit_record);
  for (std::size_t size = header_bytes().size(); size <= small.bytes.size(); ++size) {
    SCOPED_TRACE(size);
    const auto frames = static_cast<std::size_t>(
        std::count_if(small.frame_ends.begin(), small.frame_ends.end(), [&](std::size_t end) { return end <= size; }));
    const std::size_t end = frames == 0 ? header_bytes().size() : small.frame_ends[frames - 1];
    const Trace trace = must_read(small.bytes.substr(0, size) + exit_frame);
    ASSERT_TRUE(trace.exit.has_value());
    EXPECT_EQ(trace.exit->status, 137);
    EXPECT_EQ(trace.damage.frames_read, frames + 1);
    EXPECT_FALSE(trace.damage.truncated);
    EXPECT_EQ(trace.damage.any(), size != end);
    EXPECT_EQ(trace.damage.bytes_damaged, size - end);
    EXPECT_EQ(trace.damage.bytes_read, end + exit_frame.size());
    if (size != end) {
      // What is wrong with the bytes depends on where the cut is, for the appended frame makes some look whole.
      EXPECT_THAT(trace.damage.reason,
                  testing::StartsWith("byte " + std::to_string(end) + " to " + std::to_string(size - 1) + " is "));
    }
  }
}

TEST(Damage, TheWriterAppendsBehindACut) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  const SmallTrace small = small_trace();
  write_file(path, small.bytes.substr(0, small.bytes.size() - 5));
  Writer writer;
  ASSERT_TRUE(writer.append(path)) << writer.error();
  writer.add(ExitStatus{139});
  ASSERT_TRUE(writer.close()) << writer.error();
  EXPECT_EQ(read_file(path).substr(0, small.bytes.size() - 5), small.bytes.substr(0, small.bytes.size() - 5));
  const Trace trace = must_read(read_file(path));
  ASSERT_TRUE(trace.exit.has_value());
  EXPECT_EQ(trace.exit->status, 139);
  EXPECT_EQ(trace.damage.frames_read, 4U);
  EXPECT_EQ(trace.sites.size(), 3U);
}

TEST(Damage, AFlippedBitCostsOneFrame) {
  const SmallTrace small = small_trace();
  const Trace whole = must_read(small.bytes);
  std::size_t harmless = 0;
  for (std::size_t at = header_bytes().size(); at < small.bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(testing::Message() << "byte " << at << " bit " << bit);
      std::string hit = small.bytes;
      hit[at] = static_cast<char>(hit[at] ^ (1 << bit));
      const Trace trace = must_read(hit);
      const auto frame = static_cast<std::size_t>(
          std::upper_bound(small.frame_ends.begin(), small.frame_ends.end(), at) - small.frame_ends.begin());
      const std::size_t begin = frame == 0 ? header_bytes().size() : small.frame_ends[frame - 1];
      if (!trace.damage.any()) {
        // A few bits of a zstd frame mean nothing.
        ++harmless;
        expect_same_contents(trace, whole);
        continue;
      }
      EXPECT_EQ(trace.damage.frames_read, 3U);
      EXPECT_EQ(trace.damage.regions_damaged, 1U);
      EXPECT_EQ(trace.damage.bytes_damaged, small.frame_ends[frame] - begin);
      if (frame != 0) {
        EXPECT_TRUE(equal(trace.run, whole.run));
      }
      if (frame != 2) {
        EXPECT_TRUE(equal(trace.gradients, whole.gradients));
      }
      if (frame != 3) {
        EXPECT_TRUE(equal(trace.status, whole.status));
      }
    }
  }
  EXPECT_LT(harmless, small.bytes.size() / 10);
}

TEST(Damage, BytesThatAreNoFrameArePassedOver) {
  const SmallTrace small = small_trace();
  const std::size_t middle = small.frame_ends[1];
  // Zeros as a file system leaves them, text, and the beginning of a magic right before the next frame.
  for (const std::string& garbage : {std::string(5000, '\0'), std::string("hello"), std::string("\x28\xB5\x2F")}) {
    const Trace inside = must_read(small.bytes.substr(0, middle) + garbage + small.bytes.substr(middle));
    EXPECT_EQ(inside.damage.frames_read, 4U);
    EXPECT_EQ(inside.damage.bytes_damaged, garbage.size());
    EXPECT_FALSE(inside.damage.truncated);
    EXPECT_TRUE(inside.damage.any());
    const Trace behind = must_read(small.bytes + garbage);
    EXPECT_EQ(behind.damage.frames_read, 4U);
    EXPECT_EQ(behind.damage.bytes_damaged, garbage.size());
    EXPECT_EQ(behind.damage.bytes_read, small.bytes.size());
    EXPECT_TRUE(behind.damage.any());
  }
}

TEST(Damage, SeveralPlacesAreCounted) {
  const SmallTrace small = small_trace();
  std::string hit = small.bytes;
  hit[small.frame_ends[0] - 1] ^= 1;
  hit[small.frame_ends[2] - 1] ^= 1;
  hit.resize(hit.size() - 2);
  const Trace trace = must_read(hit);
  EXPECT_EQ(trace.damage.frames_read, 1U);
  EXPECT_EQ(trace.damage.regions_damaged, 2U);  // the last two frames lie side by side
  EXPECT_EQ(trace.sites.size(), 3U);
}

TEST(Damage, AFrameWithoutChecksumIsNotTrusted) {
  std::string record;
  encode_record(record, ExitStatus{1});
  EXPECT_EQ(must_read(header_bytes() + frame_bytes(record)).damage.frames_read, 1U);
  EXPECT_EQ(must_fail(header_bytes() + frame_bytes(record, false)).kind, ReadErrorKind::damaged);
}

TEST(Damage, SkippableFramesOfLaterVersionsAreSkipped) {
  const SmallTrace small = small_trace();
  const std::string skippable("\x50\x2A\x4D\x18\x03\0\0\0abc", 11);
  const std::size_t middle = small.frame_ends[1];
  const Trace trace = must_read(small.bytes.substr(0, middle) + skippable + small.bytes.substr(middle) + skippable);
  EXPECT_FALSE(trace.damage.any());
  EXPECT_EQ(trace.damage.frames_read, 4U);
  EXPECT_EQ(trace.damage.bytes_read, small.bytes.size() + 22);
}

TEST(Damage, NothingButAHeaderIsAnErrorThatSaysSo) {
  const ReadError error = must_fail(header_bytes());
  EXPECT_EQ(error.kind, ReadErrorKind::damaged);
  EXPECT_EQ(
      error.message,
      "test.ampscope holds the header of a trace and nothing else: the program ended before it had trained a step, "
      "or its first records could not be written");
  const ReadError cut = must_fail(header_bytes() + "\x28\xB5\x2F\xFD\x24");
  EXPECT_EQ(cut.kind, ReadErrorKind::damaged);
  EXPECT_EQ(
      cut.message,
      "test.ampscope is damaged from its beginning: byte 20 to the end is an incomplete frame, and no complete frame "
      "follows; nothing can be read from it");
}

// ---- versions
// --------------------------------------------------------------------------------------------------------

TEST(Versions, ANewerMajorIsRefusedWithTheReleaseThatReadsIt) {
  const SmallTrace small = small_trace();
  const ReadError error = must_fail(header_bytes(2, 3) + small.bytes.substr(20));
  EXPECT_EQ(error.kind, ReadErrorKind::too_new);
  EXPECT_EQ(error.message,
            "test.ampscope has trace format 2.3; this release reads format 1, so it needs ampscope 2.x or newer");
  const ReadError header_only = must_fail(header_bytes(7, 0));
  EXPECT_EQ(header_only.kind, ReadErrorKind::too_new);
}

TEST(Versions, ANewerMinorIsRead) {
  const SmallTrace small = small_trace();
  const Trace trace = must_read(header_bytes(1, 9) + small.bytes.substr(20));
  EXPECT_EQ(trace.minor, 9);
  EXPECT_EQ(trace.damage.frames_read, 4U);
  EXPECT_FALSE(trace.damage.any());
}

TEST(Versions, ALongerHeaderIsReadBySize) {
  const SmallTrace small = small_trace();
  std::string header = header_bytes(1, 1) + std::string(100, 'x');
  header[4] = 112;
  EXPECT_EQ(must_read(header + small.bytes.substr(20)).damage.frames_read, 4U);
  EXPECT_EQ(must_fail(header.substr(0, 60)).kind, ReadErrorKind::damaged);
}

TEST(Versions, MajorZeroIsNoTrace) {
  EXPECT_EQ(must_fail(header_bytes(0, 1)).kind, ReadErrorKind::not_a_trace);
}

/// A record as a later release could write it.
std::string record(std::string_view kind, const std::vector<std::pair<std::string, std::string>>& fields) {
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
}

template <class Write>
std::string item(const Write& write) {
  std::string out;
  cbor::Encoder encoder(out);
  write(encoder);
  return out;
}
std::string number(std::int64_t value) {
  return item([&](cbor::Encoder& e) { e.integer(value); });
}
std::string text(std::string_view value) {
  return item([&](cbor::Encoder& e) { e.text(value); });
}

TEST(Versions, UnknownKindsAreSkippedAndCounted) {
  std::string known;
  encode_record(known, ExitStatus{3});
  const Trace trace =
      must_read(header_bytes() + frame_bytes(record("hologram", {{"id", number(1)}}) + known + record("hologram", {})));
  EXPECT_EQ(trace.damage.records_skipped, 2U);
  EXPECT_EQ(trace.damage.records_read, 1U);
  EXPECT_FALSE(trace.damage.any());
  EXPECT_EQ(trace.exit.value().status, 3);
}

TEST(Versions, UnknownFieldsElementsAndTagsAreSkipped) {
  // ["exit", {7: 1, "added": [{…}], "status": 1(5)}, "third element"]
  std::string out;
  cbor::Encoder encoder(out);
  encoder.array(3);
  encoder.text("exit");
  encoder.map(3);
  encoder.unsigned_integer(7);
  encoder.unsigned_integer(1);
  encoder.text("added");
  encoder.array(1);
  encoder.map(1);
  encoder.text("deep");
  encoder.float64(0.5);
  encoder.text("status");
  out.push_back(static_cast<char>(0xC1));
  encoder.unsigned_integer(5);
  encoder.text("third element");
  const Trace trace = must_read(header_bytes() + frame_bytes(out));
  EXPECT_FALSE(trace.damage.any());
  EXPECT_EQ(trace.exit.value().status, 5);
}

TEST(Versions, UnknownEnumeratorsReadAsUnknown) {
  const std::string kinds = item([](cbor::Encoder& e) {
    const std::uint8_t values[] = {0, 99, 6};
    e.typed_array(cbor::ArrayTag::uint8, values, 3);
  });
  const std::string events = item([&](cbor::Encoder& e) { e.map(1); }) + text("kind") + kinds;
  const Trace trace = must_read(
      header_bytes() +
      frame_bytes(
          record("site",
                 {{"id", number(0)}, {"kind", number(77)}, {"phase", number(77)}, {"compute_dtype", number(250)}}) +
          record("pattern", {{"id", number(0)}, {"events", events}})));
  EXPECT_FALSE(trace.damage.any());
  EXPECT_EQ(trace.sites.at(0).kind, SiteKind::range);
  EXPECT_EQ(trace.sites.at(0).phase, Phase::other);
  EXPECT_EQ(trace.sites.at(0).compute_dtype, DType::other);
  ASSERT_EQ(trace.patterns.at(0).events.size(), 2U);
  EXPECT_EQ(trace.patterns[0].events[1].kind, EventKind::optimizer_step);
}

TEST(Versions, NumbersOfAnotherSortAreRead) {
  // A whole number where a float belongs, and a float64 where a float32 does.
  const std::string scale = item([](cbor::Encoder& e) {
    const double values[] = {65536.0};
    e.typed_array(cbor::ArrayTag::float64, values, sizeof(values));
  });
  const std::string steps = item([](cbor::Encoder& e) {
    const std::uint8_t values[] = {4};
    e.typed_array(cbor::ArrayTag::uint8, values, 1);
  });
  const Trace trace = must_read(
      header_bytes() + frame_bytes(record("run", {{"budget_percent", number(2)}}) +
                                   record("scaler_updates",
                                          {{"step", steps}, {"scale_before", scale}, {"scale_after", number(32768)}})));
  EXPECT_FALSE(trace.damage.any());
  EXPECT_EQ(trace.run.budget_percent, 2.0);
  EXPECT_EQ(trace.scaler_updates.at(0).scale_before, 65536.0F);
  EXPECT_EQ(trace.scaler_updates.at(0).scale_after, 32768.0F);
}

TEST(Damage, ARecordOfWrongTypesIsLeftOutAndTheNextIsRead) {
  std::string good;
  encode_record(good, ExitStatus{4});
  const std::vector<std::string> bad = {
      record("exit", {{"status", text("one")}}),
      record("exit", {{"status", item([](cbor::Encoder& e) { e.float64(1.5); })}}),
      record("run", {{"run_id", number(5)}}),
      record("run", {{"command", text("python")}}),
      record("run", {{"command", item([](cbor::Encoder& e) { e.map(0); })}}),
      record("site", {{"source", number(1)}}),
      record("optimizer", {{"id", number(0)}, {"settings", item([](cbor::Encoder& e) { e.array(0); })}}),
      record("totals", {{"site", number(1)}}),  // the key column must be an array
      record("totals", {}),                     // and must be there
      record("totals", {{"site", text("none")}}),
      text("no record"),
      number(5),
      item([](cbor::Encoder& e) { e.array(0); }),
      item([](cbor::Encoder& e) {
        e.array(2);
        e.unsigned_integer(1);
        e.map(0);
      }),
      item([](cbor::Encoder& e) {
        e.array(2);
        e.text("exit");
        e.array(0);
      }),
  };
  for (const auto& record : bad) {
    SCOPED_TRACE(testing::PrintToString(record));
    const Trace trace = must_read(header_bytes() + frame_bytes(record + good));
    EXPECT_EQ(trace.damage.records_damaged, 1U);
    EXPECT_EQ(trace.damage.records_read, 1U);
    EXPECT_TRUE(trace.damage.any());
    EXPECT_NE(trace.damage.reason, "");
    ASSERT_TRUE(trace.exit.has_value());
    EXPECT_EQ(trace.exit->status, 4);
  }
}

}  // namespace
}  // namespace ampscope::trace::test
