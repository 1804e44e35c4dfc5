#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reporters/ci/github.h"
#include "reporters/ci/junit.h"
#include "reporters/ci/sarif.h"
#include "tests/reporters/sample_reports.h"

namespace ampscope::reporters {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

const std::vector<RuleEntry>& rules() {
  static const std::vector<RuleEntry> entries = {
      {"AMP202", "clip-before-unscale", "gradients are clipped before they are unscaled", analyzers::Severity::error},
      {"AMP301", "calibration-ok", "the scale settles", analyzers::Severity::info},
      {"AMP501", "grad-underflow", "gradients are flushed to zero", analyzers::Severity::warning}};
  return entries;
}

TEST(Sarif, NamesRuleLevelPlaceAndFingerprint) {
  const Json sarif = Json::parse(render_sarif(testing::clipped_while_scaled(), rules()));
  EXPECT_EQ(sarif["version"], "2.1.0");
  const Json& run = sarif["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 3U);
  EXPECT_EQ(run["originalUriBaseIds"]["SRCROOT"]["uri"], "file:///project/digits/");
  ASSERT_EQ(run["results"].size(), 2U);
  const Json& result = run["results"][0];
  EXPECT_EQ(result["ruleId"], "AMP202");
  EXPECT_EQ(run["tool"]["driver"]["rules"][result["ruleIndex"].get<int>()]["id"], "AMP202");
  EXPECT_EQ(result["level"], "error");
  const Json& place = result["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"], Json({{"uri", "train.py"}, {"uriBaseId", "SRCROOT"}}));
  EXPECT_EQ(place["region"]["startLine"], 48);
  EXPECT_EQ(result["partialFingerprints"]["ampscope/v1"].get<std::string>().size(), 16U);
  EXPECT_EQ(run["results"][1]["level"], "note");
  EXPECT_TRUE(run["results"][1]["locations"].empty());
}

TEST(Sarif, SpellsPathsAsUris) {
  const Json sarif = Json::parse(render_sarif(testing::hostile(), rules()));
  EXPECT_EQ(sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            "a%20b%2Cc%3Ad%25%1B.py");
  analyzers::Report report = testing::clipped_while_scaled();
  report.findings[0].culprit.source->file = "/opt/other place/x.py";
  const Json other = Json::parse(render_sarif(report, rules()));
  EXPECT_EQ(other["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"],
            Json({{"uri", "file:///opt/other%20place/x.py"}}));
}

TEST(Junit, HasACaseForEachRule) {
  const std::string faulty = render_junit(testing::clipped_while_scaled(), rules());
  EXPECT_THAT(faulty, HasSubstr(R"(<testsuites name="ampscope" tests="3" failures="1" errors="0">)"));
  EXPECT_THAT(faulty,
              HasSubstr(R"(<failure type="error" message="gradients are clipped while they are still scaled">)"));
  EXPECT_THAT(faulty, HasSubstr("<system-out>"));
  EXPECT_THAT(faulty, HasSubstr(R"(<testcase classname="ampscope.AMP501" name="grad-underflow"/>)"));
  const std::string quiet = render_junit(testing::healthy(), rules());
  EXPECT_THAT(quiet, HasSubstr(R"(failures="0")"));
  EXPECT_THAT(quiet, HasSubstr(R"(skipped="1")"));
  EXPECT_THAT(quiet, HasSubstr(R"x(<skipped message="needs gradient statistics (--level grads or higher)"/>)x"));
}

TEST(Junit, EscapesMarkupAndControlCharacters) {
  const std::string text = render_junit(testing::hostile(), rules());
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("]]>")));
}

TEST(Github, AnnotatesTheLine) {
  EXPECT_EQ(render_github(testing::clipped_while_scaled()).substr(0, 74),
            "::error file=train.py,line=48,title=AMP202 clip-before-unscale::gradients ");
  EXPECT_EQ(render_github(testing::healthy()), "");
}

TEST(Github, CannotBeMadeToRunACommand) {
  const std::string text = render_github(testing::hostile());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_THAT(text, StartsWith("::warning file=a b%2Cc%3Ad%25\x1b.py,line=3,title="));
  EXPECT_THAT(text, HasSubstr("%250A::error::injected%0A::error::injected"));
}

}  // namespace
}  // namespace ampscope::reporters
