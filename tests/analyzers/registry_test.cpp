// The contract that every rule keeps, present and future.
#include "analyzers/core/registry.h"

#include <cctype>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ampscope::analyzers {
namespace {

using ::testing::HasSubstr;

TEST(Registry, IsOrderedByCodeWithoutDuplicates) {
  std::set<std::string> names;
  std::string previous;
  for (const Rule* rule : all_rules()) {
    EXPECT_LT(previous, rule->code);
    previous = rule->code;
    EXPECT_TRUE(names.insert(rule->name).second) << rule->name;
  }
  EXPECT_GE(all_rules().size(), 17U);
}

TEST(Registry, FindsByCodeAndByName) {
  ASSERT_NE(find_rule("AMP202"), nullptr);
  EXPECT_STREQ(find_rule("amp202")->name, "clip-before-unscale");
  EXPECT_STREQ(find_rule("clip-before-unscale")->code, "AMP202");
  EXPECT_EQ(find_rule("AMP000"), nullptr);
  EXPECT_EQ(find_rule(""), nullptr);
  EXPECT_TRUE(rule_page("AMP000").empty());
  EXPECT_EQ(rule_page("amp202"), rule_page("AMP202"));
}

TEST(Registry, DescriptorsAreWhole) {
  for (const Rule* rule : all_rules()) {
    SCOPED_TRACE(rule->code);
    const std::string code = rule->code;
    EXPECT_EQ(code.size(), 6U);
    EXPECT_TRUE(code.starts_with("AMP"));
    // The first digit is the family's.
    EXPECT_EQ(code[3] - '1', static_cast<int>(rule->family));
    for (const char* c = rule->name; *c != '\0'; ++c) {
      EXPECT_TRUE(*c == '-' || std::islower(static_cast<unsigned char>(*c)) != 0 ||
                  std::isdigit(static_cast<unsigned char>(*c)) != 0);
    }
    const std::string summary = rule->summary;
    EXPECT_FALSE(summary.empty());
    EXPECT_FALSE(summary.ends_with("."));
    EXPECT_LE(summary.size(), 110U);
    const bool looks = rule->evaluate != nullptr || rule->evaluate_run != nullptr;
    EXPECT_TRUE(looks || rule->claim != nullptr);
    EXPECT_EQ(rule->claim == nullptr, rule->explain == nullptr);
    for (const ParameterSpec& parameter : rule->parameters) {
      EXPECT_LE(parameter.minimum, parameter.default_value) << parameter.name;
      EXPECT_LE(parameter.default_value, parameter.maximum) << parameter.name;
      EXPECT_FALSE(std::string(parameter.help).empty()) << parameter.name;
    }
    EXPECT_STRNE(family_name(rule->family), "");
    for (const Stream need : rule->needs)
      EXPECT_STRNE(stream_need(need), "");
  }
}

TEST(Registry, PagesHaveTheirSectionsInOrder) {
  for (const Rule* rule : all_rules()) {
    SCOPED_TRACE(rule->code);
    const std::string page(rule_page(rule->code));
    EXPECT_TRUE(page.starts_with("# " + std::string(rule->code) + " " + rule->name + "\n"));
    std::size_t at = 0;
    for (const char* section : {"\n## What it means\n", "\n## Why it matters\n", "\n## Example\n",
                                "\n## How ampscope sees it\n", "\n## When it stays quiet\n", "\n## Parameters\n"}) {
      const std::size_t found = page.find(section, at);
      ASSERT_NE(found, std::string::npos) << section;
      at = found;
    }
    for (const ParameterSpec& parameter : rule->parameters) {
      EXPECT_THAT(page, HasSubstr("`" + std::string(parameter.name) + "`"));
    }
    if (rule->parameters.empty()) {
      EXPECT_THAT(page, HasSubstr("## Parameters\n\nNone.\n"));
    }
    const std::string severity = severity_name(rule->severity);
    EXPECT_THAT(page.substr(0, 400), HasSubstr(severity));
  }
}

}  // namespace
}  // namespace ampscope::analyzers
