#include "reporters/terminal/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ampscope::reporters {
namespace {

using ::testing::ElementsAre;

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrap("  one   two  ", 20), ElementsAre("one two"));
  EXPECT_THAT(wrap("", 10), ElementsAre(""));
  EXPECT_THAT(wrap("   ", 10), ElementsAre(""));
}

TEST(Wrap, KeepsALongWordWhole) {
  EXPECT_THAT(wrap("a /very/long/path b", 6), ElementsAre("a", "/very/long/path", "b"));
}

TEST(Wrap, KeepsPartsBetweenDotsTogether) {
  EXPECT_THAT(wrap("norm 1 · true norm 2", 16), ElementsAre("norm 1 ·", "true norm 2"));
  EXPECT_THAT(wrap("norm 1 · true norm 2", 20), ElementsAre("norm 1 · true norm 2"));
  EXPECT_THAT(wrap("a · much too long for it", 10), ElementsAre("a · much", "too long", "for it"));
}

TEST(Wrap, CountsColumnsNotBytes) {
  EXPECT_THAT(wrap("größe 層層 x", 10), ElementsAre("größe 層層", "x"));
}

TEST(ShortenLeft, KeepsTheEnd) {
  EXPECT_EQ(shorten_left("model/attention.py", 18), "model/attention.py");
  EXPECT_EQ(shorten_left("model/attention.py", 13), "…attention.py");
  EXPECT_EQ(shorten_left("größer", 4), "…ßer");
  EXPECT_EQ(shorten_left("abc", 0), "");
}

TEST(SpacesBetween, AreAtLeastTwo) {
  EXPECT_EQ(spaces_between("ab", "cd", 10).size(), 6U);
  EXPECT_EQ(spaces_between("ab", "cd", 4).size(), 2U);
}

}  // namespace
}  // namespace ampscope::reporters
