#include "analyzers/core/scalars.h"

#include <gtest/gtest.h>

namespace ampscope::analyzers {
namespace {

trace::Site call(std::string name, std::vector<double> scalars, std::vector<std::string> names = {}) {
  trace::Site site;
  site.name = std::move(name);
  site.scalars = std::move(scalars);
  site.scalar_names = std::move(names);
  return site;
}

TEST(Scalars, AreFoundByName) {
  const trace::Site site = call("aten::add_", {2, -0.5}, {"other", "alpha"});
  EXPECT_EQ(scalar_named(site, "alpha"), -0.5);
  EXPECT_EQ(scalar_named(site, "other"), 2);
  EXPECT_EQ(scalar_named(site, "dim"), std::nullopt);
}

TEST(Scalars, OfAnOlderTraceMayHaveNoNames) {
  EXPECT_EQ(scalar_named(call("aten::add_", {2}), "alpha"), std::nullopt);
  EXPECT_EQ(scalar_named(call("aten::add_", {2}, {"other", "alpha"}), "alpha"), std::nullopt);
}

TEST(Scalars, FactorIsOfMultiplicationsAndDivisionsByOneNumber) {
  EXPECT_EQ(factor_of(call("aten::mul_", {8})), 8);
  EXPECT_EQ(factor_of(call("aten::div", {8})), 0.125);
  EXPECT_EQ(factor_of(call("aten::_foreach_div_", {4})), 0.25);
  EXPECT_EQ(factor_of(call("aten::_foreach_mul_", {4, 2})), 0) << "a number for each tensor";
  EXPECT_EQ(factor_of(call("aten::mul", {})), 0) << "by a tensor";
  EXPECT_EQ(factor_of(call("aten::div", {0})), 0);
  EXPECT_EQ(factor_of(call("aten::add", {8})), 0);
}

}  // namespace
}  // namespace ampscope::analyzers
