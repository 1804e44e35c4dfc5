#include "analyzers/core/engine.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/core/registry.h"
#include "tests/analyzers/fixture.h"

namespace ampscope::analyzers {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

testing::Fixture fixture(const std::string& rule, const std::string& name) {
  return testing::load_fixture(std::filesystem::path(AMPSCOPE_ANALYZER_DATA).parent_path() / "rules" / rule /
                               (name + ".json"));
}

std::vector<std::string> codes(const Report& report) {
  std::vector<std::string> result;
  for (const Finding& finding : report.findings)
    result.push_back(finding.rule);
  return result;
}

TEST(Engine, NothingGivesAnEmptyReport) {
  const Report report = analyze({});
  EXPECT_EQ(report.verdict, Verdict::clean);
  EXPECT_THAT(report.findings, IsEmpty());
}

TEST(Engine, AnEmptyTraceIsNoReasonToStumble) {
  const Report report = analyze(std::vector<trace::Trace>(1));
  EXPECT_THAT(report.findings, IsEmpty());
  EXPECT_FALSE(report.not_evaluated.empty());
}

TEST(Engine, RulesCanBeSelectedAndIgnored) {
  const auto run = fixture("AMP212", "fires_plain");
  EXPECT_THAT(codes(analyze(run.traces)), ElementsAre("AMP212", "AMP301"));
  EXPECT_THAT(codes(analyze(run.traces, {.select = {"AMP3"}})), ElementsAre("AMP301"));
  EXPECT_THAT(codes(analyze(run.traces, {.select = {"scheduler-advanced-on-skip"}})), ElementsAre("AMP212"));
  EXPECT_THAT(codes(analyze(run.traces, {.ignore = {"amp212"}})), ElementsAre("AMP301"));
  EXPECT_THAT(codes(analyze(run.traces, {.select = {"AMP2"}, .ignore = {"AMP212"}})), IsEmpty());
}

TEST(Engine, FindingsBelowTheLeastSeverityAreLeftOut) {
  const auto run = fixture("AMP212", "fires_plain");
  const Report report = analyze(run.traces, {.min_severity = Severity::warning});
  EXPECT_THAT(codes(report), ElementsAre("AMP212"));
  EXPECT_EQ(report.verdict, Verdict::warning);
}

TEST(Engine, ParametersChangeWhatARuleFinds) {
  const auto run = fixture("AMP212", "fires_plain");
  const Report report = analyze(run.traces, {.parameters = {{"AMP212", {{"warn_share", 0.5}}}}});
  ASSERT_EQ(report.findings.size(), 2U);
  EXPECT_EQ(report.verdict, Verdict::info);
}

TEST(Engine, SaysWhatIsWrongWithOptions) {
  EXPECT_THAT(check_options({}), IsEmpty());
  EXPECT_THAT(check_options({.parameters = {{"AMP000", {}}}}), ElementsAre(HasSubstr("no rule AMP000")));
  EXPECT_THAT(check_options({.parameters = {{"AMP302", {{"colour", 1}}}}}),
              ElementsAre(HasSubstr("no parameter colour")));
  EXPECT_THAT(check_options({.parameters = {{"AMP302", {{"min_skips", 0}}}}}), ElementsAre(HasSubstr("out of range")));
  EXPECT_THAT(check_options({.select = {"AMP9", "nonsense"}, .ignore = {""}}),
              ElementsAre(HasSubstr("'nonsense'"), HasSubstr("no rule matches ''")));
}

TEST(Engine, RulesWithoutTheirDataAreNotEvaluated) {
  const json run = {{"run", {{"level", "ops"}}},
                    {"optimizers", {"SGD"}},
                    {"sites", {{{"op", "aten::mm"}, {"checked_calls", 0}}}},
                    {"steps", {{{"do", {"backward optimizers=0", "optimizer_step object=0"}}}}}};
  const Report report = analyze({testing::trace_from_json(run)});
  std::vector<std::string> left;
  for (const NotEvaluated& rule : report.not_evaluated)
    left.push_back(rule.rule + ": " + rule.needs);
  EXPECT_THAT(left, ::testing::Contains("AMP501: gradient statistics (--level grads or higher)"));
  EXPECT_THAT(left, ::testing::Contains("AMP401: non-finite checks of operator outputs (--level auto or higher)"));
  EXPECT_EQ(report.run.rules + static_cast<std::int64_t>(left.size()), static_cast<std::int64_t>(all_rules().size()));
}

TEST(Engine, GivesTheSameReportEveryTime) {
  const auto run = fixture("AMP302", "fires_under_its_cause");
  const Report first = analyze(run.traces);
  const Report second = analyze(run.traces);
  ASSERT_EQ(codes(first), codes(second));
  for (std::size_t i = 0; i < first.findings.size(); ++i) {
    EXPECT_EQ(first.findings[i].message, second.findings[i].message);
    EXPECT_EQ(first.findings[i].evidence, second.findings[i].evidence);
  }
}

TEST(Engine, RanksGiveOneReport) {
  // Rank 1 clips before unscaling, rank 0 does not; given in the wrong order.
  auto faulty = fixture("AMP202", "fires_plain").traces.front();
  auto right = fixture("AMP202", "quiet_unscaled").traces.front();
  faulty.run.rank = 1;
  right.run.rank = 0;
  const Report report = analyze({faulty, right});
  EXPECT_EQ(report.run.ranks, 2);
  EXPECT_EQ(report.run.steps, 100);  // Rank 0's.
  ASSERT_THAT(codes(report), ElementsAre("AMP202"));
  EXPECT_THAT(report.findings[0].evidence, ::testing::Contains(std::pair<std::string, EvidenceValue>("ranks", "1")));

  const Report both = analyze({faulty, faulty});
  ASSERT_THAT(codes(both), ElementsAre("AMP202"));  // The same finding on both is one.
  EXPECT_THAT(both.findings[0].evidence, ::testing::Not(::testing::Contains(::testing::Pair("ranks", ::testing::_))));
}

TEST(Engine, OrdersBySeverityThenStep) {
  auto run = fixture("AMP404", "fires_half_call");
  const Report report = analyze(run.traces);
  for (std::size_t i = 1; i < report.findings.size(); ++i) {
    EXPECT_GE(report.findings[i - 1].severity, report.findings[i].severity);
  }
}

}  // namespace
}  // namespace ampscope::analyzers
