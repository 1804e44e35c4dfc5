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

TEST(SpellBytes, PicksAUnit) {
  EXPECT_EQ(spell_bytes(17), "17 bytes");
  EXPECT_EQ(spell_bytes(1024), "1.0 KiB");
  EXPECT_EQ(spell_bytes(3'355'443), "3.2 MiB");
}

}  // namespace
}  // namespace ampscope::reporters
