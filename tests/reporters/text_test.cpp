#include "reporters/common/text.h"

#include <string>

#include <gtest/gtest.h>

namespace ampscope::reporters {
namespace {

TEST(ValidUtf8, KeepsWellFormedText) {
  const std::string text = "plain, größer, 層, 😀, \x7f";
  EXPECT_EQ(valid_utf8(text), text);
}

// Cases of the Unicode Standard, section 3.9, table 3-8 and "U+FFFD substitution of maximal subparts".
TEST(ValidUtf8, ReplacesMaximalSubparts) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(valid_utf8("\xC0\xAF"), bad + bad);                      // overlong
  EXPECT_EQ(valid_utf8("\xE0\x80\x80"), bad + bad + bad);            // overlong
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), bad + bad + bad);            // surrogate
  EXPECT_EQ(valid_utf8("\xF4\x91\x92\x93"), bad + bad + bad + bad);  // beyond U+10FFFF
  EXPECT_EQ(valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
                       "A"),
            bad + bad + bad + bad + "A");
  EXPECT_EQ(valid_utf8("cut \xE2\x80"), "cut " + bad);
}

TEST(Printable, LeavesNothingThatCommandsATerminal) {
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(printable("a\nb\tc\r"), "a b c ");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");  // C1 control: CSI in one byte
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "evil"),
            "\\u202eevil");  // right-to-left override
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
}

TEST(Printable, KeepsLetters) {
  EXPECT_EQ(printable("größer 層 ≥ 2^17"), "größer 層 ≥ 2^17");
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("größer"), 6);
  EXPECT_EQ(display_width("層"), 2);
  EXPECT_EQ(display_width("e\xCC\x81"), 1);  // e and a combining acute accent
  EXPECT_EQ(display_width("→"), 1);
}

TEST(Shorten, CutsAtAColumnAndSaysSo) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdef", 4), "abc…");
  EXPECT_EQ(shorten("層層層", 4), "層…");  // half a character does not exist
  EXPECT_EQ(shorten("abc", 0), "");
}

TEST(Trim, TakesSpacesFromBothEnds) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim(" \t "), "");
}

}  // namespace
}  // namespace ampscope::reporters
