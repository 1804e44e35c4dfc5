#include "cli/app/suggest.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ampscope::cli {
namespace {

const std::vector<std::string> verbs = {"run", "report", "rules", "check", "explain", "doctor"};

TEST(Nearest, FindsSlips) {
  EXPECT_EQ(nearest("reprot", verbs), "report");
  EXPECT_EQ(nearest("chek", verbs), "check");
  EXPECT_EQ(nearest("rnu", verbs), "run");
  EXPECT_EQ(nearest("Explian", verbs), "explain");
  EXPECT_EQ(nearest("doc", verbs), "doctor");  // the beginning of a word
}

TEST(Nearest, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(nearest("", verbs), "");
  EXPECT_EQ(nearest("train.py", verbs), "");
  EXPECT_EQ(nearest("x", verbs), "");
  EXPECT_EQ(nearest(std::string(10000, 'a'), verbs), "");
}

TEST(DidYouMean, IsPartOfASentence) {
  EXPECT_EQ(did_you_mean("chekc", verbs), "; did you mean 'check'?");
  EXPECT_EQ(did_you_mean("zzzzzz", verbs), "");
}

}  // namespace
}  // namespace ampscope::cli
