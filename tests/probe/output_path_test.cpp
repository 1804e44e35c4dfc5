#include "probe/record/output_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace ampscope::record {
namespace {

Options with(std::string output, std::int64_t rank) {
  Options options;
  options.output = std::move(output);
  options.rank = rank;
  return options;
}

TEST(OutputPath, TheFirstRankAndASingleProcessKeepTheNameAskedFor) {
  EXPECT_EQ(preferred_path(with("/a/run.ampscope", trace::none)), "/a/run.ampscope");
  EXPECT_EQ(preferred_path(with("/a/run.ampscope", 0)), "/a/run.ampscope");
  EXPECT_EQ(preferred_path(with("/a/run.ampscope", 3)), "/a/run.rank3.ampscope");
}

TEST(OutputPath, PlaceholdersAreExpandedAndARankInTheNameIsEnough) {
  const std::string pid = std::to_string(getpid());
  EXPECT_EQ(preferred_path(with("/a/r%r-%p-100%%.ampscope", 3)), "/a/r3-" + pid + "-100%.ampscope");
  EXPECT_EQ(preferred_path(with("/a/%q.ampscope", trace::none)), "/a/%q.ampscope");
}

TEST(OutputPath, AFurtherProcessGetsItsPid) {
  EXPECT_EQ(fallback_path(with("/a/run.ampscope", trace::none)), "/a/run." + std::to_string(getpid()) + ".ampscope");
}

TEST(OutputPath, DotsOfFoldersAreNoExtension) {
  EXPECT_EQ(with_word("/a.b/run", "x"), "/a.b/run.x");
  EXPECT_EQ(with_word("/a/.hidden", "x"), "/a/.hidden.x");
  EXPECT_EQ(with_word("run.tar.ampscope", "x"), "run.tar.x.ampscope");
}

}  // namespace
}  // namespace ampscope::record
