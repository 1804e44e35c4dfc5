// The reader against files that are none, and its progress.

#include "trace/reader.h"

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"

namespace ampscope::trace::test {
namespace {

ReadError failure(const std::string& path) {
  const auto result = read_trace(path);
  if (const auto* error = std::get_if<ReadError>(&result)) return *error;
  ADD_FAILURE() << path << " was read";
  return {};
}

TEST(Reader, SaysWhatIsWrongWithAPath) {
  const Folder folder;
  const ReadError missing = failure(folder.path("run.ampscope"));
  EXPECT_EQ(missing.kind, ReadErrorKind::cannot_open);
  EXPECT_EQ(missing.message,
            folder.path("run.ampscope") + " does not exist; `ampscope run -- <command>` writes a trace");
  const ReadError directory = failure(folder.path());
  EXPECT_EQ(directory.kind, ReadErrorKind::cannot_open);
  EXPECT_EQ(directory.message, folder.path() + " is a folder; name the trace in it");
  write_file(folder.path("empty"), "");
  const ReadError empty = failure(folder.path("empty"));
  EXPECT_EQ(empty.kind, ReadErrorKind::not_a_trace);
  EXPECT_EQ(empty.message, folder.path("empty") + " is empty: nothing was recorded in it");
  write_file(folder.path("text"), "epoch,loss\n0,2.3\n1,2.1\n");
  const ReadError text = failure(folder.path("text"));
  EXPECT_EQ(text.kind, ReadErrorKind::not_a_trace);
  EXPECT_EQ(text.message, folder.path("text") +
                              " is not a trace of ampscope; `ampscope run` writes one, run.ampscope unless -o names "
                              "another");
  write_file(folder.path("cut"), header_bytes().substr(0, 11));
  const ReadError cut = failure(folder.path("cut"));
  EXPECT_EQ(cut.kind, ReadErrorKind::damaged);
  EXPECT_EQ(cut.message, folder.path("cut") + " is cut off inside its header: nothing was recorded in it");
  // Any other zstd file.
  write_file(folder.path("zstd"), frame_bytes("hello"));
  EXPECT_EQ(failure(folder.path("zstd")).kind, ReadErrorKind::not_a_trace);
}

TEST(Reader, LooksLikeATrace) {
  const Folder folder;
  write_file(folder.path("trace"), small_trace().bytes);
  write_file(folder.path("newer"), header_bytes(9, 0));
  write_file(folder.path("text"), "a text that is long enough");
  write_file(folder.path("short"), header_bytes().substr(0, 19));
  EXPECT_TRUE(looks_like_trace(folder.path("trace")));
  EXPECT_TRUE(looks_like_trace(folder.path("newer")));
  EXPECT_FALSE(looks_like_trace(folder.path("text")));
  EXPECT_FALSE(looks_like_trace(folder.path("short")));
  EXPECT_FALSE(looks_like_trace(folder.path("missing")));
  EXPECT_FALSE(looks_like_trace(folder.path()));
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(looks_like_trace(folder.path("pipe")));  // and it does not wait for a writer
}

TEST(Reader, ReadsFromAPipe) {
  const Folder folder;
  const std::string path = folder.path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const SmallTrace small = small_trace();
  std::thread writer([&] { write_file(path, small.bytes); });
  auto result = read_trace(path);
  writer.join();
  ASSERT_TRUE(std::holds_alternative<Trace>(result));
  const Trace& trace = std::get<Trace>(result);
  EXPECT_EQ(trace.damage.frames_read, small.frame_ends.size());
  EXPECT_EQ(trace.damage.bytes_total, small.bytes.size());
  EXPECT_FALSE(trace.damage.any());
}

TEST(Reader, ProgressGrowsToTheSizeOfTheFile) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  Writer writer;
  ASSERT_TRUE(writer.open(path, Writer::Existing::refuse));
  Random random(9, 3);
  for (int frame = 0; frame < 40; ++frame) {
    std::vector<SiteNumerics> rows(2000);
    for (auto& row : rows) {
      row.site = 0;
      row.stats.sum_squares = std::bit_cast<double>(random.bits());
      row.stats.min = std::bit_cast<double>(random.bits());
      row.stats.max = std::bit_cast<double>(random.bits());
    }
    writer.add(std::span<const SiteNumerics>(rows));
    ASSERT_TRUE(writer.flush());
  }
  ASSERT_TRUE(writer.close());
  const std::uint64_t size = std::filesystem::file_size(path);
  ASSERT_GT(size, std::uint64_t{1} << 20);  // more than the reader holds at once
  std::vector<std::uint64_t> seen;
  const auto result = read_trace(path, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, size);
    seen.push_back(done);
  });
  EXPECT_EQ(std::get<Trace>(result).numerics.size(), 80'000U);
  ASSERT_GE(seen.size(), 40U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), size);
}

}  // namespace
}  // namespace ampscope::trace::test
