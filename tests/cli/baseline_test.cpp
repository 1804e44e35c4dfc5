#include "cli/check/baseline.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/app/error.h"
#include "cli/check/verdict.h"

namespace ampscope::cli {
namespace {

using analyzers::Finding;
using analyzers::Severity;
using analyzers::Verdict;

Finding finding(const std::string& rule, const std::string& module, Severity severity) {
  Finding finding;
  finding.rule = rule;
  finding.culprit.module = module;
  finding.severity = severity;
  return finding;
}

analyzers::Report report() {
  analyzers::Report report;
  report.findings = {finding("AMP401", "a", Severity::error), finding("AMP401", "b", Severity::error),
                     finding("AMP302", "", Severity::warning)};
  report.verdict = Verdict::error;
  return report;
}

TEST(Baseline, TakesKnownFindingsOut) {
  const std::string baseline = make_baseline(report());
  EXPECT_EQ(nlohmann::json::parse(baseline)["findings"].size(), 3U);
  analyzers::Report same = report();
  EXPECT_EQ(apply_baseline(baseline, "x", same).known, 3);
  EXPECT_TRUE(same.findings.empty());
  EXPECT_EQ(same.verdict, Verdict::clean);
}

TEST(Baseline, LeavesNewFindings) {
  analyzers::Report old = report();
  old.findings.erase(old.findings.begin());
  analyzers::Report now = report();
  now.findings.pop_back();
  const BaselineResult result = apply_baseline(make_baseline(old), "x", now);
  EXPECT_EQ(result.known, 1);
  EXPECT_EQ(result.gone, 1);
  ASSERT_EQ(now.findings.size(), 1U);
  EXPECT_EQ(now.findings[0].culprit.module, "a");
  EXPECT_EQ(now.verdict, Verdict::error);
}

TEST(Baseline, ASecondFindingOfTheSameKindIsNew) {
  analyzers::Report now = report();
  now.findings.push_back(now.findings[0]);
  EXPECT_EQ(apply_baseline(make_baseline(report()), "x", now).known, 3);
  EXPECT_EQ(now.findings.size(), 1U);
}

TEST(Baseline, RefusesOtherFiles) {
  analyzers::Report any = report();
  for (const char* text : {"", "[]", "{}", "nonsense", R"({"schema": "ampscope.baseline/2", "findings": []})",
                           R"({"schema": "ampscope.baseline/1", "findings": 3})"}) {
    EXPECT_THROW(apply_baseline(text, "x", any), UserError) << text;
  }
  EXPECT_EQ(any.findings.size(), 3U);
}

TEST(Fails, FromItsThresholdOn) {
  analyzers::Report any = report();
  EXPECT_TRUE(fails(any, Severity::error));
  any.findings = {finding("AMP302", "", Severity::warning)};
  EXPECT_FALSE(fails(any, Severity::error));
  EXPECT_TRUE(fails(any, Severity::warning));
  any.findings = {finding("AMP301", "", Severity::info)};
  EXPECT_FALSE(fails(any, Severity::warning));
  EXPECT_EQ(parse_fail_on("warning", "x"), Severity::warning);
  EXPECT_THROW((void)parse_fail_on("info", "x"), UserError);
}

}  // namespace
}  // namespace ampscope::cli
