// The writer against the file system: it never throws, never harms what it should not touch, and says what went wrong.

#include "trace/writer.h"

#include <csignal>
#include <filesystem>
#include <functional>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/trace/files.h"
#include "tests/trace/records.h"

namespace ampscope::trace::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr auto refuse = Writer::Existing::refuse;
constexpr auto overwrite = Writer::Existing::overwrite;

/// Hard to compress, so that a frame of many has the size one expects.
std::vector<SiteNumerics> noise(std::size_t count) {
  Random random(5, 3);
  std::vector<SiteNumerics> rows(count);
  for (auto& row : rows) {
    row.site = 1;
    row.stats.sum_squares = std::bit_cast<double>(random.bits());
    row.stats.min = std::bit_cast<double>(random.bits());
  }
  return rows;
}

void add_noise(Writer& writer, std::size_t count) {
  const auto rows = noise(count);
  writer.add(std::span<const SiteNumerics>(rows));
}

TEST(Writer, RefusesAnExistingFileAndLeavesItAlone) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  write_file(path, "precious");
  Writer writer;
  EXPECT_FALSE(writer.open(path, refuse));
  EXPECT_FALSE(writer.is_open());
  EXPECT_EQ(writer.error(), path + " exists already; give another name with -o, or --force to overwrite it");
  writer.add(ExitStatus{1});
  EXPECT_FALSE(writer.flush());
  EXPECT_EQ(read_file(path), "precious");
  // A link that leads nowhere is an existing name too.
  std::filesystem::create_symlink(folder.path("nowhere"), folder.path("link"));
  EXPECT_FALSE(writer.open(folder.path("link"), refuse));
  EXPECT_FALSE(std::filesystem::exists(folder.path("nowhere")));
}

TEST(Writer, OverwritesWithoutTouchingTheOldFileOfAProcessThatStillWrites) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  Writer old;
  ASSERT_TRUE(old.open(path, refuse));
  Writer writer;
  ASSERT_TRUE(writer.open(path, overwrite)) << writer.error();
  old.add(ExitStatus{1});
  EXPECT_TRUE(old.close());
  writer.add(ExitStatus{2});
  ASSERT_TRUE(writer.close());
  const Trace trace = must_read(read_file(path));
  EXPECT_EQ(trace.exit.value().status, 2);
  EXPECT_FALSE(trace.damage.any());
}

TEST(Writer, OverwritesThroughALink) {
  const Folder folder;
  write_file(folder.path("target"), std::string(1000, 'x'));
  std::filesystem::create_symlink(folder.path("target"), folder.path("link"));
  Writer writer;
  ASSERT_TRUE(writer.open(folder.path("link"), overwrite));
  writer.add(ExitStatus{2});
  ASSERT_TRUE(writer.close());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(must_read(read_file(folder.path("target"))).exit.value().status, 2);
}

TEST(Writer, SaysWhyItCannotCreateAFile) {
  const Folder folder;
  Writer writer;
  EXPECT_FALSE(writer.open(folder.path("no/such/run.ampscope"), refuse));
  EXPECT_EQ(writer.error(),
            "cannot create the trace " + folder.path("no/such/run.ampscope") + ": its folder does not exist");
  EXPECT_FALSE(writer.open(folder.path(), overwrite));
  EXPECT_EQ(writer.error(), "cannot create the trace " + folder.path() + ": it is a folder");
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(writer.open(folder.path("pipe"), overwrite));
  EXPECT_EQ(writer.error(),
            "cannot create the trace " + folder.path("pipe") + ": it is a pipe or a socket, and a trace needs a file");
  EXPECT_FALSE(writer.open(std::string(5000, 'n'), refuse));
  EXPECT_THAT(writer.error(), HasSubstr("File name too long"));
  // And the same object can still open another file.
  EXPECT_TRUE(writer.open(folder.path("good"), refuse));
  EXPECT_EQ(writer.error(), "");
}

/// Runs `test` in a process of its own, for what cannot be undone in this one. It returns what failed, or nothing.
void in_child(const std::function<std::string()>& test) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::string result = test();
    const auto written = write(pipes[1], result.data(), result.size());
    _exit(written == static_cast<ssize_t>(result.size()) ? 0 : 1);
  }
  close(pipes[1]);
  std::string result;
  char buffer[256];
  for (ssize_t count = 0; (count = read(pipes[0], buffer, sizeof(buffer))) > 0;) {
    result.append(buffer, static_cast<std::size_t>(count));
  }
  close(pipes[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(result, "");
}

TEST(Writer, SaysThatAFolderMayNotBeWritten) {
  const Folder folder;
  std::filesystem::create_directory(folder.path("closed"));
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder.path("closed").c_str(), 0555), 0);
  in_child([&]() -> std::string {
    // The superuser may write everywhere.
    if (geteuid() == 0 && setuid(65534) != 0) return "cannot become another user";
    Writer writer;
    const std::string path = folder.path("closed/run.ampscope");
    if (writer.open(path, refuse)) return "it was opened";
    if (writer.error() != "cannot create the trace " + path + ": Permission denied") return writer.error();
    return "";
  });
}

TEST(Writer, AFullDiskAtTheFirstByte) {
  Writer writer;
  EXPECT_FALSE(writer.open("/dev/full", overwrite));
  EXPECT_FALSE(writer.is_open());
  EXPECT_EQ(writer.error(), "cannot write to the trace /dev/full: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(Writer, AFullDiskInTheMiddleKeepsTheFramesBefore) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  // A limit on the size of files fails a write as a full disk does: some bytes go in, then none. The signal that comes
  // with it must not end the process either.
  in_child([&]() -> std::string {
    Writer writer;
    if (!writer.open(path, refuse)) return writer.error();
    writer.add(ExitStatus{5});
    if (!writer.flush()) return writer.error();
    const std::uint64_t good = writer.bytes_written();
    const rlimit limit{8000, 8000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit set";
    add_noise(writer, 3000);
    if (writer.flush()) return "the frame was written";
    if (writer.error() != "cannot write to the trace " + path + ": File too large") return writer.error();
    if (writer.bytes_written() != good) return "bytes_written counts what was cut off";
    if (std::filesystem::file_size(path) != good) return "the file was not cut to its last good size";
    // Refuses all further work, and keeps the first reason.
    writer.add(ExitStatus{6});
    if (writer.flush() || writer.bytes_pending() != 0) return "it went on";
    writer.close();
    if (writer.error().find("File too large") == std::string::npos) return "the reason was lost";
    // The signal was taken out, and the thread's mask is as it was.
    sigset_t set;
    sigpending(&set);
    if (sigismember(&set, SIGXFSZ) == 1) return "the signal is pending";
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    if (sigismember(&set, SIGXFSZ) == 1) return "the signal stays blocked";
    return "";
  });
  const Trace trace = must_read(read_file(path));
  EXPECT_EQ(trace.exit.value().status, 5);
  EXPECT_FALSE(trace.damage.any());
}

TEST(Writer, AFileThatCannotTakeEvenTheHeaderIsNotLeftBehind) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  in_child([&]() -> std::string {
    const rlimit limit{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit set";
    Writer writer;
    return writer.open(path, refuse) ? "it was opened" : "";
  });
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Writer, AppendsToATraceOnly) {
  const Folder folder;
  Writer writer;
  EXPECT_FALSE(writer.append(folder.path("none")));
  EXPECT_THAT(writer.error(), StartsWith("cannot append to the trace " + folder.path("none")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("none")));
  for (const std::string& bytes : {std::string(), std::string("a text file that is long enough"),
                                   header_bytes().substr(0, 12), header_bytes(2, 0)}) {
    write_file(folder.path("other"), bytes);
    EXPECT_FALSE(writer.append(folder.path("other")));
    EXPECT_FALSE(writer.is_open());
    EXPECT_EQ(writer.error(), "cannot append to " + folder.path("other") + ": it is not a trace of this format");
    writer.add(ExitStatus{1});
    writer.flush();
    EXPECT_EQ(read_file(folder.path("other")), bytes);
  }
  const SmallTrace small = small_trace();
  write_file(folder.path("trace"), small.bytes);
  ASSERT_TRUE(writer.append(folder.path("trace"))) << writer.error();
  EXPECT_EQ(writer.bytes_written(), 0U);
  writer.add(ExitStatus{143});
  ASSERT_TRUE(writer.close());
  EXPECT_GT(writer.bytes_written(), 0U);
  const Trace trace = must_read(read_file(folder.path("trace")));
  EXPECT_EQ(trace.exit.value().status, 143);
  EXPECT_EQ(trace.damage.frames_read, small.frame_ends.size() + 1);
  EXPECT_FALSE(trace.damage.any());
}

TEST(Writer, TwoProcessesAppendWithoutOverwritingEachOther) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  Writer first;
  ASSERT_TRUE(first.open(path, refuse));
  Writer second;
  ASSERT_TRUE(second.append(path));
  first.add(RunEnd{"exit", "", 1});
  ASSERT_TRUE(first.flush());
  second.add(ExitStatus{1});
  ASSERT_TRUE(second.flush());
  RecorderStatus status;
  status.steps = 3;
  first.add(status);
  ASSERT_TRUE(first.close());
  const Trace trace = must_read(read_file(path));
  EXPECT_EQ(trace.damage.frames_read, 3U);
  EXPECT_FALSE(trace.damage.any());
}

TEST(Writer, AnAbandonedFileIsLeftAsItIs) {
  const Folder folder;
  const std::string path = folder.path("run.ampscope");
  Writer writer;
  ASSERT_TRUE(writer.open(path, refuse));
  writer.add(ExitStatus{1});
  ASSERT_TRUE(writer.flush());
  const std::string before = read_file(path);
  add_noise(writer, 100);
  in_child([&]() -> std::string {
    writer.abandon();
    if (writer.is_open() || writer.flush() || writer.close()) return "it is still open";
    if (writer.bytes_written() != 0 || writer.bytes_pending() != 0 || !writer.error().empty()) return "it remembers";
    writer.add(ExitStatus{7});
    // The child's own file.
    if (!writer.open(path + ".child", refuse)) return writer.error();
    writer.add(ExitStatus{8});
    return writer.close() ? "" : writer.error();
  });
  EXPECT_EQ(read_file(path), before);
  EXPECT_EQ(must_read(read_file(path + ".child")).exit.value().status, 8);
  // The parent goes on as if nothing had been.
  ASSERT_TRUE(writer.close());
  const Trace trace = must_read(read_file(path));
  EXPECT_EQ(trace.numerics.size(), 100U);
  EXPECT_FALSE(trace.damage.any());
}

TEST(Writer, TheFileIsClosedInProgramsThatAreStarted) {
  const Folder folder;
  Writer writer;
  ASSERT_TRUE(writer.open(folder.path("run.ampscope"), refuse));
  bool found = false;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != folder.path("run.ampscope")) continue;
    found = true;
    const int flags = fcntl(std::stoi(entry.path().filename()), F_GETFD);
    EXPECT_TRUE((flags & FD_CLOEXEC) != 0);
  }
  EXPECT_TRUE(found);
}

TEST(Writer, CanBeMovedReopenedAndUsedWithoutAFile) {
  const Folder folder;
  Writer unused;
  unused.add(ExitStatus{1});
  EXPECT_FALSE(unused.flush());
  EXPECT_FALSE(unused.close());
  EXPECT_EQ(unused.error(), "");
  unused.abandon();

  Writer writer;
  ASSERT_TRUE(writer.open(folder.path("first"), refuse));
  writer.add(ExitStatus{1});
  EXPECT_GT(writer.bytes_pending(), 0U);
  Writer moved = std::move(writer);
  EXPECT_TRUE(moved.is_open());
  ASSERT_TRUE(moved.close());
  EXPECT_FALSE(moved.is_open());
  ASSERT_TRUE(moved.open(folder.path("second"), refuse));
  EXPECT_EQ(moved.bytes_written(), header_bytes().size());
  EXPECT_EQ(moved.bytes_pending(), 0U);
  EXPECT_TRUE(moved.flush());  // nothing to write is no frame
  EXPECT_EQ(read_file(folder.path("second")), header_bytes());
  EXPECT_EQ(must_read(read_file(folder.path("first"))).exit.value().status, 1);
}

TEST(Writer, WithoutCloseOnlyWhatWasFlushedIsKept) {
  const Folder folder;
  {
    Writer writer;
    ASSERT_TRUE(writer.open(folder.path("run"), refuse));
    writer.add(ExitStatus{1});
    ASSERT_TRUE(writer.flush());
    writer.add(ExitStatus{2});
  }
  EXPECT_EQ(must_read(read_file(folder.path("run"))).exit.value().status, 1);
}

TEST(Writer, ARecordThatNoFrameCanHoldIsAnErrorAndNotACrash) {
  const Folder folder;
  Writer writer;
  ASSERT_TRUE(writer.open(folder.path("run"), refuse));
  RunInfo run;
  run.command.assign(70, std::string(schema::max_text, 'x'));
  writer.add(run);
  EXPECT_THAT(writer.error(), HasSubstr("more than a frame may hold"));
  EXPECT_FALSE(writer.flush());
}

}  // namespace
}  // namespace ampscope::trace::test
