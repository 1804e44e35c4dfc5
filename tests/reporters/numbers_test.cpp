#include "reporters/common/numbers.h"

#include <gtest/gtest.h>

namespace ampscope::reporters {
namespace {

TEST(SpellScale, WritesPowersOfTwo) {
  EXPECT_EQ(spell_scale(65536), "65536");
  EXPECT_EQ(spell_scale(1), "1");
  EXPECT_EQ(spell_scale(131072), "2^17");
  EXPECT_EQ(spell_scale(48211.5), "48 212");
  EXPECT_EQ(spell_scale(0.125), "2^-3");
  EXPECT_EQ(spell_scale(1000), "1000");
  EXPECT_EQ(spell_scale(0), "0");
}

}  // namespace
}  // namespace ampscope::reporters
