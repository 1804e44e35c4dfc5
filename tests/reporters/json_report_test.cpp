#include "reporters/json/json_report.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reporters/sample_reports.h"

namespace ampscope::reporters {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items())
    names.push_back(name);
  return names;
}

TEST(JsonReport, SaysWhatABudgetGotAndCost) {
  analyzers::Report report = testing::clipped_while_scaled();
  EXPECT_TRUE(to_json(report)["run"]["budget"].is_null());
  analyzers::BudgetSummary budget;
  budget.percent = 2;
  budget.operator_steps = 40;
  budget.gradient_steps = 30;
  budget.full_steps = 7;
  report.run.budget = budget;
  EXPECT_TRUE(to_json(report)["run"]["budget"]["cost_percent"].is_null());
  report.run.budget->cost_percent = 1.25;
  report.run.budget->cost_interval = {1.0, 1.5};
  const Json said = to_json(report)["run"]["budget"];
  EXPECT_EQ(said["percent"], 2);
  EXPECT_EQ(said["cost_percent"], 1.25);
  EXPECT_EQ(said["cost_percent_interval"], Json({1, 1.5}));
  EXPECT_EQ(said["operator_steps"], 40);
  EXPECT_EQ(said["gradient_steps"], 30);
  EXPECT_EQ(said["full_steps"], 7);
}

TEST(JsonReport, SpellsTheContract) {
  const Json report = to_json(testing::clipped_while_scaled());
  EXPECT_THAT(keys(report), ElementsAre("schema", "tool", "run", "verdict", "findings", "not_evaluated", "scaler",
                                        "ops", "parameters", "nonfinite", "flight_records", "series", "hidden"));
  EXPECT_EQ(report["schema"], "ampscope.report/1");
  EXPECT_EQ(report["verdict"], "error");
  EXPECT_EQ(report["run"]["command"], Json({"python", "train.py", "--epochs", "3"}));
  EXPECT_EQ(report["run"]["skipped_steps"], Json({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(report["run"]["level"], "auto");
  EXPECT_EQ(report["run"]["started"], "2026-01-02T03:04:05Z");
  EXPECT_DOUBLE_EQ(report["run"]["overhead_ratio"].get<double>(), 1.0621);

  const Json& finding = report["findings"][0];
  EXPECT_EQ(finding["rule"], "AMP202");
  EXPECT_EQ(finding["severity"], "error");
  EXPECT_EQ(finding["culprit"]["source"], "train.py:48");
  EXPECT_EQ(finding["culprit"]["phase"], "optimizer");
  EXPECT_TRUE(finding["culprit"]["module"].is_null());
  EXPECT_EQ(finding["steps"], Json({{"first", 0}, {"last", 411}, {"count", 412}}));
  EXPECT_EQ(finding["evidence"]["norm_seen"].dump(), "48211");
  EXPECT_EQ(finding["evidence"]["clip"], "norm");

  EXPECT_EQ(report["scaler"]["settings"]["growth_interval"], 2000);
  EXPECT_TRUE(report["scaler"]["recommendation"].is_null());
  const Json& window = report["parameters"][0]["gradients"][0];
  EXPECT_THAT(keys(window), ElementsAre("first_step", "last_step", "scale_log2", "count", "zero", "subnormal", "nan",
                                        "infinite", "absmax", "exponents"));
  EXPECT_EQ(window["infinite"], 4);
  EXPECT_EQ(window["exponents"], Json({{"first", -12}, {"counts", {1, 0, 83}}}));
}

TEST(JsonReport, ListsScalersOnlyWhenThereAreSeveral) {
  EXPECT_TRUE(to_json(testing::healthy())["scaler"].is_null());
  const Json report = to_json(testing::two_scalers());
  EXPECT_EQ(report["scaler"]["id"], 0);
  ASSERT_EQ(report["scalers"].size(), 2U);
  EXPECT_EQ(report["scalers"][1]["recommendation"]["init_scale"], 8192);
  EXPECT_EQ(report["scalers"][1]["recommendation"]["reason"], "saves 3 skips");
}

TEST(JsonReport, FoldsSymptomsAndTellsTheChain) {
  const Json finding = to_json(testing::overflow_with_chain())["findings"][0];
  EXPECT_EQ(finding["symptoms"], Json({"AMP302", "AMP802"}));
  ASSERT_EQ(finding["explained"].size(), 1U);
  EXPECT_EQ(finding["explained"][0]["rule"], "AMP302");
  ASSERT_EQ(finding["chain"].size(), 7U);
  EXPECT_EQ(finding["chain"][0]["source"], "model/attention.py:57");
  EXPECT_EQ(finding["chain"][0]["dtype"], "fp16");
}

TEST(JsonReport, SurvivesHostileTextAndFigures) {
  const std::string text = render_json(testing::hostile());
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  const Json report = Json::parse(text);  // throws on invalid UTF-8
  const Json& evidence = report["findings"][0]["evidence"];
  EXPECT_EQ(evidence["nan"], "NaN");
  EXPECT_EQ(evidence["up"], "Infinity");
  EXPECT_EQ(evidence["down"], "-Infinity");
  EXPECT_EQ(evidence["text \xEF\xBF\xBD"], "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(report["run"]["overhead_ratio"], "Infinity");
  EXPECT_EQ(report["findings"][0]["culprit"]["module"], "<script>alert('x')</script>");
}

TEST(JsonReport, FingerprintsIgnoreStepsAndLineNumbers) {
  analyzers::Report report = testing::clipped_while_scaled();
  const Json before = to_json(report)["findings"][0]["fingerprint"];
  report.findings[0].steps = {7, 9, 3};
  report.findings[0].culprit.source->line = 49;
  report.findings[0].evidence.clear();
  report.run.working_directory = "/other/digits";
  report.findings[0].culprit.source->file = "/other/digits/train.py";
  EXPECT_EQ(to_json(report)["findings"][0]["fingerprint"], before);
  report.findings[0].culprit.source->function = "evaluate";
  EXPECT_NE(to_json(report)["findings"][0]["fingerprint"], before);
}

TEST(JsonReport, FingerprintsOfOneReportDiffer) {
  analyzers::Report report = testing::clipped_while_scaled();
  report.findings.push_back(report.findings[0]);
  const Json findings = to_json(report)["findings"];
  EXPECT_EQ(findings[2]["fingerprint"], findings[0]["fingerprint"].get<std::string>() + "-2");
}

}  // namespace
}  // namespace ampscope::reporters
