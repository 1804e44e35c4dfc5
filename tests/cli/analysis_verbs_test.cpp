// `ampscope report`, `check` and `info` as processes.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/world.h"

namespace ampscope::cli::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class AnalysisVerbs : public ::testing::Test {
 protected:
  void SetUp() override {
    world.record("lossy.ampscope", {"dropped=500"});
    world.record("clean.ampscope", {});
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& sentence) const {
    const Result result = world.ampscope(arguments);
    EXPECT_EQ(result.status, 2) << result.errors;
    EXPECT_THAT(result.errors, StartsWith("ampscope " + arguments[0] + ": "));
    EXPECT_THAT(result.errors, HasSubstr(sentence));
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
    EXPECT_EQ(result.output, "");
  }
  World world;
};

TEST_F(AnalysisVerbs, ReportsInEveryFormat) {
  EXPECT_THAT(world.ampscope({"report", "lossy.ampscope"}).output, HasSubstr("warning AMP902"));
  const Result as_json = world.ampscope({"report", "lossy.ampscope", "--format", "json"});
  EXPECT_EQ(as_json.errors, "");
  EXPECT_EQ(json::parse(as_json.output)["findings"][0]["rule"], "AMP902");
  EXPECT_EQ(json::parse(world.ampscope({"report", "lossy.ampscope", "--format=sarif"}).output)["version"], "2.1.0");
  EXPECT_THAT(world.ampscope({"report", "lossy.ampscope", "--format", "junit"}).output,
              HasSubstr("classname=\"ampscope.AMP902\""));
  EXPECT_THAT(world.ampscope({"report", "lossy.ampscope", "--format", "github"}).output,
              StartsWith("::warning title=AMP902"));
}

TEST_F(AnalysisVerbs, WritesHtmlWhereThePageWasBuilt) {
  const bool built = world.ampscope({"doctor"}).output.find("this build writes HTML reports") != std::string::npos;
  const Result result = world.ampscope({"report", "lossy.ampscope", "--format", "html", "-o", "page.html"});
  EXPECT_EQ(result.status, built ? 0 : 2) << result.errors;
  EXPECT_EQ(world.work.has("page.html"), built);
  EXPECT_EQ(world.train({"-q", "--html", "run.html"}, {}).status, built ? 0 : 125);
  EXPECT_EQ(world.work.has("run.html"), built);
  if (built) {
    EXPECT_THAT(world.work.read("run.html"), HasSubstr("ampscope.report/1"));
  }
}

TEST_F(AnalysisVerbs, WritesAFileWholeAndNeverOverAnother) {
  const Result first = world.ampscope({"report", "lossy.ampscope", "--format", "json", "-o", "report.json"});
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.output, "");
  EXPECT_EQ(json::parse(world.work.read("report.json"))["verdict"], "warning");
  expect_refused({"report", "clean.ampscope", "--format", "json", "-o", "report.json"}, "report.json exists");
  EXPECT_EQ(json::parse(world.work.read("report.json"))["verdict"], "warning");
  EXPECT_EQ(world.ampscope({"report", "clean.ampscope", "--format", "json", "-o", "report.json", "--force"}).status, 0);
  EXPECT_EQ(json::parse(world.work.read("report.json"))["verdict"], "clean");
  EXPECT_THAT(world.work.names(), ElementsAre("clean.ampscope", "lossy.ampscope", "report.json"));
  expect_refused({"report", "clean.ampscope", "-o", "missing/report.txt"}, "there is no folder missing");
}

TEST_F(AnalysisVerbs, ChoosesFindings) {
  const auto verdict = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"report", "lossy.ampscope", "--format", "json"});
    return json::parse(world.ampscope(options).output)["verdict"].get<std::string>();
  };
  EXPECT_EQ(verdict({}), "warning");
  EXPECT_EQ(verdict({"--ignore", "events-dropped"}), "clean");
  EXPECT_EQ(verdict({"--select", "amp2, AMP3"}), "clean");
  EXPECT_EQ(verdict({"--select", "AMP9"}), "warning");
  EXPECT_EQ(verdict({"--min-severity", "error"}), "clean");
  EXPECT_EQ(verdict({"--set", "AMP902.warn_share=0.9"}), "info");
  EXPECT_EQ(verdict({"--set", "events-dropped.warn_share=0.9", "--set", "AMP902.warn_share=0"}), "warning");
}

TEST_F(AnalysisVerbs, FindsTheOtherProcessesOfTheRun) {
  world.record("run.ampscope", {"ranks=3"});
  for (const char* given : {"run.ampscope", "run.rank2.ampscope"}) {
    const Result result = world.ampscope({"report", given});
    EXPECT_THAT(result.output, HasSubstr("3 ranks")) << given;
    EXPECT_THAT(result.errors, HasSubstr("ampscope: also reading run")) << given;
  }
  const Result all = world.ampscope({"report", "run.ampscope", "run.rank1.ampscope", "./run.rank2.ampscope"});
  EXPECT_EQ(all.errors, "");
  EXPECT_THAT(all.output, HasSubstr("3 ranks"));
}

TEST_F(AnalysisVerbs, TakesNoCopyForAnotherProcess) {
  world.record("run.ampscope", {});
  world.work.write("kept.ampscope", world.work.read("run.ampscope"));
  const Result result = world.ampscope({"report", "run.ampscope"});
  EXPECT_EQ(result.errors, "");
  EXPECT_THAT(result.output, Not(HasSubstr("ranks")));
}

TEST_F(AnalysisVerbs, RefusesWhatIsNoTrace) {
  world.work.write("text", "a text that is no trace\n");
  world.work.write("empty", "");
  world.work.write("folder/x", "");
  std::string newer = world.work.read("clean.ampscope");
  newer[16] = 99;  // the major version, behind the frame's magic and size and our name
  world.work.write("newer", newer);
  for (const char* verb : {"report", "check", "info"}) {
    expect_refused({verb, "missing.ampscope"}, "missing.ampscope");
    expect_refused({verb, "text"}, "text");
    expect_refused({verb, "empty"}, "empty");
    expect_refused({verb, "folder"}, "folder");
    expect_refused({verb, "newer"}, "newer");
    expect_refused({verb}, "TRACE");
  }
}

TEST_F(AnalysisVerbs, RefusesWrongOptions) {
  expect_refused({"report", "clean.ampscope", "--formt", "json"}, "unknown option '--formt'; did you mean '--format'?");
  expect_refused({"report", "clean.ampscope", "--format", "jsn"}, "--format: 'jsn' is not a format");
  expect_refused({"report", "clean.ampscope", "--select", "AMP999"}, "--select: there is no rule 'AMP999'");
  expect_refused({"report", "clean.ampscope", "--min-severity", "warn"}, "did you mean 'warning'?");
  expect_refused({"report", "clean.ampscope", "lossy.ampscope"}, "are of different runs");
  expect_refused({"check", "clean.ampscope", "--fail-on", "info"}, "--fail-on: 'info'");
  expect_refused({"check", "clean.ampscope", "--baseline", "missing.json"}, "cannot read missing.json");
  expect_refused({"info", "clean.ampscope", "--format", "html"}, "--format: 'html'");
}

TEST_F(AnalysisVerbs, ReadsWhatIsLeftOfACutTrace) {
  const std::string whole = world.work.read("clean.ampscope");
  world.work.write("cut.ampscope", whole.substr(0, whole.size() - 3));
  const Result report = world.ampscope({"report", "cut.ampscope"});
  EXPECT_EQ(report.status, 0);
  EXPECT_THAT(report.errors, HasSubstr("cut.ampscope: "));
  EXPECT_THAT(report.output, HasSubstr("3 steps"));
  EXPECT_EQ(world.ampscope({"info", "cut.ampscope"}).status, 0);
  const json info = json::parse(world.ampscope({"info", "cut.ampscope", "--format", "json"}).output);
  EXPECT_GE(info["traces"][0]["lost"].size(), 1U);
}

TEST_F(AnalysisVerbs, ChecksWithAnExitStatus) {
  EXPECT_EQ(world.ampscope({"check", "clean.ampscope"}).status, 0);
  EXPECT_EQ(world.ampscope({"check", "lossy.ampscope"}).status, 1);
  EXPECT_EQ(world.ampscope({"check", "lossy.ampscope", "--fail-on", "error"}).status, 0);
  // The format must not change the verdict.
  for (const char* format : {"json", "sarif", "junit", "github"}) {
    EXPECT_EQ(world.ampscope({"check", "lossy.ampscope", "--format", format}).status, 1) << format;
  }
  world.record("nothing.ampscope", {"steps=0"});
  expect_refused({"check", "nothing.ampscope"}, "no finished training step");
}

TEST_F(AnalysisVerbs, PassesOverFindingsOfTheBaseline) {
  EXPECT_EQ(world.ampscope({"check", "lossy.ampscope", "--write-baseline", "known.json"}).status, 0);
  expect_refused({"check", "lossy.ampscope", "--write-baseline", "known.json"}, "known.json exists");
  const Result known = world.ampscope({"check", "lossy.ampscope", "--baseline", "known.json"});
  EXPECT_EQ(known.status, 0);
  EXPECT_THAT(known.errors, HasSubstr("1 finding known from known.json"));
  EXPECT_THAT(known.output, Not(HasSubstr("AMP902")));
  const Result gone = world.ampscope({"check", "clean.ampscope", "--baseline", "known.json"});
  EXPECT_EQ(gone.status, 0);
  EXPECT_THAT(gone.errors, HasSubstr("1 finding of known.json not found any more"));
  world.work.write("broken.json", "{\"schema\": \"something\"}");
  expect_refused({"check", "lossy.ampscope", "--baseline", "broken.json"}, "broken.json is no baseline");
  expect_refused({"check", "lossy.ampscope", "--baseline", "known.json", "--write-baseline", "new.json"},
                 "exclude each other");
}

TEST_F(AnalysisVerbs, FindsTheBaselineOfTheFileFromEveryFolder) {
  EXPECT_EQ(world.ampscope({"check", "lossy.ampscope", "--write-baseline", "known.json"}).status, 0);
  world.work.write("ampscope.toml", "[check]\nbaseline = \"known.json\"\n");
  world.work.write("sub/keep", "");
  Start start = world.start({"check", "../lossy.ampscope"});
  start.directory = world.work / "sub";
  EXPECT_EQ(run(start).status, 0);
}

TEST_F(AnalysisVerbs, SaysWhatATraceHolds) {
  const Result text = world.ampscope({"info", "lossy.ampscope", "clean.ampscope"});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.output, HasSubstr("lossy.ampscope"));
  EXPECT_THAT(text.output, HasSubstr("exit status 0"));
  EXPECT_THAT(text.output, HasSubstr("500 events came faster"));
  EXPECT_THAT(text.output, HasSubstr("nothing\n"));
  const json info = json::parse(world.ampscope({"info", "clean.ampscope", "--format", "json"}).output);
  EXPECT_EQ(info["schema"], "ampscope.info/1");
  EXPECT_EQ(info["traces"][0]["run"]["torch"], "2.13.0");
  EXPECT_TRUE(info["traces"][0]["lost"].empty());
}

}  // namespace
}  // namespace ampscope::cli::testing
