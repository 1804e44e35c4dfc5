// Every rule against its fixtures in tests/analyzers/rules/AMPnnn: those named fires* must give the rule's finding,
// those named quiet* must not; both must give exactly the findings they expect, so that no rule fires beside another.
#include "tests/analyzers/fixture.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/core/engine.h"
#include "analyzers/core/registry.h"

namespace ampscope::analyzers::testing {
namespace {

using nlohmann::json;

std::vector<std::filesystem::path> all_fixtures() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(AMPSCOPE_RULE_FIXTURES)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.ends_with(".expect.json")) continue;
    if (name.starts_with("fires") || name.starts_with("quiet")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string rule_of(const std::filesystem::path& fixture) {
  return fixture.parent_path().filename().string();
}

/// Codes of all findings, those folded under others included.
std::set<std::string> all_codes(const Report& report) {
  std::set<std::string> codes;
  for (const Finding& finding : report.findings) {
    codes.insert(finding.rule);
    codes.insert(finding.symptoms.begin(), finding.symptoms.end());
  }
  return codes;
}

std::string place_of(const std::optional<trace::SourceLine>& source) {
  if (!source) return "null";
  const std::string file = std::filesystem::path(source->file).filename().string();
  return file + ":" + std::to_string(source->line);
}

void compare_culprit(const Culprit& culprit, const json& expected) {
  if (expected.contains("op")) {
    EXPECT_EQ(culprit.op.value_or("null"), expected["op"].get<std::string>());
  }
  if (expected.contains("module")) {
    EXPECT_EQ(culprit.module.value_or("null"), expected["module"].get<std::string>());
  }
  if (expected.contains("parameter")) {
    EXPECT_EQ(culprit.parameter.value_or("null"), expected["parameter"].get<std::string>());
  }
  if (expected.contains("source")) {
    EXPECT_EQ(place_of(culprit.source), expected["source"].get<std::string>());
  }
  if (expected.contains("phase")) {
    EXPECT_STREQ(culprit.phase ? phase_name(*culprit.phase) : "null", expected["phase"].get<std::string>().c_str());
  }
}

void compare_evidence(const Evidence& evidence, const json& expected) {
  for (const auto& [name, value] : expected.items()) {
    const auto found = std::find_if(evidence.begin(), evidence.end(),
                                    [&, &wanted = name](const auto& item) { return item.first == wanted; });
    if (found == evidence.end()) {
      ADD_FAILURE() << "no evidence '" << name << "'";
    } else if (value.is_string()) {
      ASSERT_TRUE(std::holds_alternative<std::string>(found->second)) << name;
      EXPECT_THAT(std::get<std::string>(found->second), ::testing::HasSubstr(value.get<std::string>())) << name;
    } else if (value.is_array()) {  // [least, most]
      ASSERT_TRUE(std::holds_alternative<double>(found->second)) << name;
      EXPECT_GE(std::get<double>(found->second), value[0].get<double>()) << name;
      EXPECT_LE(std::get<double>(found->second), value[1].get<double>()) << name;
    } else {
      ASSERT_TRUE(std::holds_alternative<double>(found->second)) << name;
      const double number = value.get<double>();
      EXPECT_NEAR(std::get<double>(found->second), number, 1e-3 * std::abs(number)) << name;
    }
  }
}

void compare_finding(const Finding& finding, const json& expected) {
  SCOPED_TRACE(finding.rule + ": " + finding.title + "\n  " + finding.message + "\n  proof: " + finding.proof);
  EXPECT_EQ(finding.rule, expected.at("rule").get<std::string>());
  if (expected.contains("severity")) {
    EXPECT_STREQ(severity_name(finding.severity), expected["severity"].get<std::string>().c_str());
  }
  if (expected.contains("title")) {
    EXPECT_EQ(finding.title, expected["title"].get<std::string>());
  }
  if (expected.contains("message")) {
    EXPECT_THAT(finding.message, ::testing::HasSubstr(expected["message"].get<std::string>()));
  }
  if (expected.contains("proof")) {
    EXPECT_EQ(finding.proof, expected["proof"].get<std::string>());
  }
  if (expected.contains("precision_fault")) {
    EXPECT_EQ(finding.precision_fault, expected["precision_fault"].get<bool>());
  }
  if (expected.contains("symptoms")) {
    EXPECT_EQ(finding.symptoms, expected["symptoms"].get<std::vector<std::string>>());
  }
  if (expected.contains("steps")) {
    const std::vector<std::int64_t> steps{finding.steps.first, finding.steps.last, finding.steps.count};
    EXPECT_EQ(steps, expected["steps"].get<std::vector<std::int64_t>>());
  }
  if (expected.contains("chain")) {
    std::vector<std::string> ops;
    for (const ChainLink& link : finding.chain)
      ops.push_back(link.op + ": " + link.note);
    EXPECT_EQ(ops, expected["chain"].get<std::vector<std::string>>());
  }
  if (expected.contains("culprit")) compare_culprit(finding.culprit, expected["culprit"]);
  if (expected.contains("evidence")) compare_evidence(finding.evidence, expected["evidence"]);
  // What every finding owes its reader.
  EXPECT_FALSE(finding.title.empty());
  EXPECT_FALSE(finding.title.ends_with("."));
  EXPECT_FALSE(finding.message.empty());
  EXPECT_FALSE(finding.proof.empty());
  EXPECT_FALSE(finding.fix.empty());
  EXPECT_LE(finding.steps.first, finding.steps.last);
  EXPECT_GE(finding.steps.count, 1);
}

class FixtureTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(FixtureTest, GivesTheFindingsItExpects) {
  const Fixture fixture = load_fixture(GetParam());
  const Report report = analyze(fixture.traces, fixture.options);
  const std::string rule = rule_of(GetParam());
  ASSERT_NE(find_rule(rule), nullptr);
  EXPECT_THAT(check_options(fixture.options), ::testing::IsEmpty());

  const bool must_fire = GetParam().filename().string().starts_with("fires");
  const std::set<std::string> codes = all_codes(report);
  EXPECT_EQ(codes.contains(rule), must_fire);

  const json expected = fixture.expect.value("findings", json::array());
  std::string found;
  for (const Finding& finding : report.findings)
    found += "\n  " + finding.rule + " " + finding.title + " | " + finding.proof;
  EXPECT_EQ(report.findings.size(), expected.size()) << found;
  for (std::size_t i = 0; i < std::min(report.findings.size(), expected.size()); ++i) {
    compare_finding(report.findings[i], expected[i]);
  }
  for (const json& code : fixture.expect.value("not_evaluated", json::array())) {
    EXPECT_TRUE(std::any_of(report.not_evaluated.begin(), report.not_evaluated.end(),
                            [&](const NotEvaluated& rule_left) { return rule_left.rule == code.get<std::string>(); }))
        << code;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, FixtureTest, ::testing::ValuesIn(all_fixtures()), [](const auto& instance) {
  std::string name = rule_of(instance.param) + "_" + instance.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(FixtureContract, EveryRuleHasFixturesOfBothKinds) {
  std::map<std::string, std::set<char>> kinds;
  for (const std::filesystem::path& path : all_fixtures())
    kinds[rule_of(path)].insert(path.filename().string().front());
  for (const Rule* rule : all_rules())
    EXPECT_EQ(kinds[rule->code].size(), 2U) << rule->code;
  EXPECT_EQ(kinds.size(), all_rules().size()) << "a folder of fixtures belongs to no rule";
}

}  // namespace
}  // namespace ampscope::analyzers::testing
