#include "cli/output/file.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/app/error.h"
#include "tests/cli/process.h"

namespace ampscope::cli {
namespace {

using ::testing::ElementsAre;

TEST(WriteFile, WritesWholeFilesAndLeavesNothingElse) {
  const testing::Folder folder;
  const std::string content = std::string(3 << 20, 'x') + '\0' + "end";
  write_file(folder / "a", content, false);
  EXPECT_EQ(folder.read("a"), content);
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_EQ(read_file(folder / "a"), content);
}

TEST(WriteFile, GivesTheModeOfAnyNewFile) {
  const testing::Folder folder;
  const mode_t old = umask(027);
  write_file(folder / "a", "x", false);
  write_file(folder / "a", "y", true);
  umask(old);
  struct stat status{};
  ASSERT_EQ(stat((folder / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST(WriteFile, ReplacesOnlyByForce) {
  const testing::Folder folder;
  folder.write("a", "old");
  EXPECT_THROW(write_file(folder / "a", "new", false), UserError);
  EXPECT_EQ(folder.read("a"), "old");
  write_file(folder / "a", "new", true);
  EXPECT_EQ(folder.read("a"), "new");
  // A dangling link is something that is there as well.
  std::filesystem::create_symlink(folder / "nowhere", folder / "link");
  EXPECT_THROW(write_file(folder / "link", "new", false), UserError);
  EXPECT_THAT(folder.names(), ElementsAre("a", "link"));
}

TEST(WriteFile, RefusesImpossiblePlaces) {
  const testing::Folder folder;
  EXPECT_THROW(write_file(folder.path(), "x", true), UserError);
  EXPECT_THROW(write_file(folder / "missing/a", "x", true), UserError);
  EXPECT_THROW(write_file("", "x", true), UserError);
  EXPECT_THROW((void)read_file(folder / "missing"), UserError);
}

}  // namespace
}  // namespace ampscope::cli
