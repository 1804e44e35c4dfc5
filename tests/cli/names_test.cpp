#include "cli/traces/names.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/app/error.h"
#include "tests/cli/process.h"

namespace ampscope::cli {
namespace {

using ::testing::ElementsAre;

TEST(OutputName, IsAbsoluteForTheProbe) {
  const OutputName name("runs/a.ampscope", "/project/ada");
  EXPECT_EQ(name.pattern(), "/project/ada/runs/a.ampscope");
  EXPECT_EQ(name.path(), "/project/ada/runs/a.ampscope");
  EXPECT_EQ(name.folder(), "/project/ada/runs");
  EXPECT_EQ(OutputName("../a", "/project/ada").path(), "/project/a");
  EXPECT_EQ(OutputName("/a", "/project/ada").pattern(), "/a");
}

TEST(OutputName, KeepsPlaceholdersOfTheFileAndEscapesTheFolder) {
  const OutputName name("a-%p-%r.ampscope", "/project/100%");
  EXPECT_EQ(name.pattern(), "/project/100%%/a-%p-%r.ampscope");
  EXPECT_EQ(name.path(), "");
  EXPECT_EQ(OutputName("50%%.ampscope", "/x").path(), "/x/50%.ampscope");
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  EXPECT_EQ(OutputName("%h/a-%h", "/x").path(), std::string("/x/") + host.data() + "/a-" + host.data());
}

TEST(OutputName, RefusesFoldersThatDifferBetweenProcesses) {
  EXPECT_THROW(OutputName("%r/a", "/x"), UserError);
  EXPECT_THROW(OutputName("", "/x"), UserError);
  EXPECT_THROW(OutputName("runs/", "/x"), UserError);
}

TEST(OutputName, KnowsTheNamesOfFurtherProcesses) {
  const OutputName plain("run.ampscope", "/x");
  for (const char* name : {"run.ampscope", "run.rank1.ampscope", "run.4711.ampscope", "run.rank12.4711.ampscope"}) {
    EXPECT_TRUE(plain.matches(name)) << name;
  }
  for (const char* name :
       {"run.rank.ampscope", "run.old.ampscope", "runXampscope", "run-1.ampscope", "run.ampscope.bak"}) {
    EXPECT_FALSE(plain.matches(name)) << name;
  }
  const OutputName placed("a-%p(1).t", "/x");
  EXPECT_TRUE(placed.matches("a-99(1).t"));
  EXPECT_TRUE(placed.matches("a-99(1).rank3.t"));
  EXPECT_FALSE(placed.matches("a-(1).t"));
  const OutputName bare("trace", "/x");
  EXPECT_TRUE(bare.matches("trace.rank1"));
  EXPECT_TRUE(OutputName(".hidden", "/x").matches(".hidden.rank1"));  // no extension, as in the probe
}

TEST(OutputName, ListsWhatIsThere) {
  const testing::Folder folder;
  for (const char* name : {"run.ampscope", "run.rank1.ampscope", "other.ampscope"})
    folder.write(name, "");
  EXPECT_THAT(OutputName("run.ampscope", folder.path()).existing(),
              ElementsAre(folder / "run.ampscope", folder / "run.rank1.ampscope"));
}

}  // namespace
}  // namespace ampscope::cli
