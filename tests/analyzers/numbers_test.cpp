#include "analyzers/core/numbers.h"

#include <limits>

#include <gtest/gtest.h>

namespace ampscope::analyzers {
namespace {

TEST(Numbers, HaveThreeSignificantDigitsAndAllDigitsOfAWholePart) {
  EXPECT_EQ(number(48211.0), "48 211");
  EXPECT_EQ(number(0.7356), "0.736");
  EXPECT_EQ(number(1.0 / 65536), "0.0000153");
  EXPECT_EQ(number(1.0), "1");
  EXPECT_EQ(number(-12.345), "-12.3");
  EXPECT_EQ(number(1234.4), "1234");
  EXPECT_EQ(number(1234567.0), "1 234 567");
  EXPECT_EQ(number(-1234567.0), "-1 234 567");
  EXPECT_EQ(number(3.4028234663852886e38), "3.4e+38");
  EXPECT_EQ(number(6e-8), "6e-08");
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(999.6), "1000");
  EXPECT_EQ(number(0.99999), "1");
}

TEST(Numbers, SpellWhatIsNotFinite) {
  EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "-Infinity");
}

TEST(Numbers, CountsAreExact) {
  EXPECT_EQ(count_of(0), "0");
  EXPECT_EQ(count_of(9999), "9999");
  EXPECT_EQ(count_of(10000), "10 000");
  EXPECT_EQ(count_of(205852672), "205 852 672");
  EXPECT_EQ(count_of(-10000), "-10 000");
  EXPECT_EQ(plural(1, "step"), "1 step");
  EXPECT_EQ(plural(12, "step"), "12 steps");
}

TEST(Numbers, ScalesArePowersOfTwo) {
  EXPECT_EQ(scale(65536), "2^16");
  EXPECT_EQ(scale(1.0 / 1024), "2^-10");
  EXPECT_EQ(scale(8), "8");
  EXPECT_EQ(scale(0.25), "0.25");
  EXPECT_EQ(scale(12345.0), "12 345");
  EXPECT_EQ(scale(0), "0");
  EXPECT_EQ(scale(std::numeric_limits<double>::infinity()), "Infinity");
}

TEST(Numbers, SharesNeverRoundToAllOrNone) {
  EXPECT_EQ(share(0), "0 %");
  EXPECT_EQ(share(1), "100 %");
  EXPECT_EQ(share(0.123456), "12.3 %");
  EXPECT_EQ(share(0.2), "20 %");
  EXPECT_EQ(share(0.00001), "< 0.01 %");
  EXPECT_EQ(share(0.0004), "0.04 %");
  EXPECT_EQ(share(0.99999), "> 99.9 %");
}

TEST(Numbers, StepsAreCountedFromZero) {
  EXPECT_EQ(step_range(7, 7), "step 7");
  EXPECT_EQ(step_range(0, 12345), "steps 0–12 345");
}

}  // namespace
}  // namespace ampscope::analyzers
