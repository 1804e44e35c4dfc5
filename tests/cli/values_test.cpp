#include "cli/settings/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/app/error.h"

namespace ampscope::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParsePercent, TakesPercentages) {
  EXPECT_DOUBLE_EQ(parse_percent("2%", "x"), 2);
  EXPECT_DOUBLE_EQ(parse_percent(" 0.5 % ", "x"), 0.5);
  EXPECT_DOUBLE_EQ(parse_percent("100", "x"), 100);
  for (const char* wrong : {"", "%", "0", "-1", "101", "2x", "nan", "inf", "1e999", "two"}) {
    EXPECT_THROW((void)parse_percent(wrong, "x"), UserError) << wrong;
  }
}

TEST(ParseSize, TakesSizes) {
  EXPECT_EQ(parse_size("65536", "x"), 65536);
  EXPECT_EQ(parse_size("512MiB", "x"), 512LL << 20);
  EXPECT_EQ(parse_size("2G", "x"), 2LL << 30);
  EXPECT_EQ(parse_size("100 kb", "x"), 100'000);
  EXPECT_EQ(parse_size("1.5M", "x"), 3LL << 19);
  for (const char* wrong : {"", "M", "1k", "-1G", "1Q", "12 apples", "1MiX", "1e40", "99999999999T"}) {
    EXPECT_THROW((void)parse_size(wrong, "x"), UserError) << wrong;
  }
}

TEST(ParseSwitch, TakesTruthValues) {
  for (const char* yes : {"1", "true", "YES", "on"})
    EXPECT_TRUE(parse_switch(yes, "x")) << yes;
  for (const char* no : {"", "0", "False", "no", "off"})
    EXPECT_FALSE(parse_switch(no, "x")) << no;
  EXPECT_THROW((void)parse_switch("maybe", "x"), UserError);
}

TEST(SplitList, DropsEmptyWords) {
  EXPECT_THAT(split_list("AMP2, AMP301 ,,clip"), ElementsAre("AMP2", "AMP301", "clip"));
  EXPECT_THAT(split_list(" , "), IsEmpty());
}

TEST(ParseChoice, NamesPlaceChoicesAndSuggestion) {
  try {
    (void)parse_choice("jsn", format_names(), "format", "--format");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "--format: 'jsn' is not a format (terminal, json, html, sarif, junit, github); did you mean 'json'?");
  }
}

}  // namespace
}  // namespace ampscope::cli
