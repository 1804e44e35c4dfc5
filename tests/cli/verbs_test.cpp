// Help, version, rules, explain, and words that are none of ours.
#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/world.h"

namespace ampscope::cli::testing {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Verbs, HelpTheReader) {
  const World world;
  for (const char* how : {"--help", "-h", "help"}) {
    const Result result = world.ampscope({how});
    EXPECT_EQ(result.status, 0) << how;
    EXPECT_THAT(result.output, HasSubstr("doctor")) << how;
  }
  const Result nothing = world.ampscope({});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(nothing.errors, HasSubstr("doctor"));
  for (const char* verb : {"run", "report", "check", "explain", "rules", "info", "doctor", "version", "completion"}) {
    const Result result = world.ampscope({verb, "--help"});
    EXPECT_EQ(result.status, 0) << verb;
    EXPECT_THAT(result.output, HasSubstr(std::string("ampscope ") + verb)) << verb;
    EXPECT_EQ(result.output, world.ampscope({"help", verb}).output) << verb;
  }
}

TEST(Verbs, TellTheirVersion) {
  const World world;
  const Result result = world.ampscope({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.output, ContainsRegex("^ampscope [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(world.ampscope({"version"}).output, result.output);
}

TEST(Verbs, SuggestWhatWasMeant) {
  const World world;
  const Result verb = world.ampscope({"reprot", "run.ampscope"});
  EXPECT_EQ(verb.status, 2);
  EXPECT_THAT(verb.errors, StartsWith("ampscope: unknown verb 'reprot'; did you mean 'report'?"));
  EXPECT_THAT(world.ampscope({"--verison"}).errors, HasSubstr("unknown option '--verison'"));
  EXPECT_THAT(world.ampscope({"version", "please"}).errors, HasSubstr("'please' is one argument too many"));
  EXPECT_EQ(world.ampscope({"version", "please"}).status, 2);
  EXPECT_THAT(world.ampscope({"\x1b[31m"}).errors, HasSubstr("'\\x1b[31m'"));
}

TEST(Verbs, ListAndExplainRules) {
  const World world;
  const Result text = world.ampscope({"rules"});
  EXPECT_EQ(text.status, 0);
  const json rules = json::parse(world.ampscope({"rules", "--format", "json"}).output)["rules"];
  EXPECT_GE(rules.size(), 2U);
  std::string before;
  for (const json& rule : rules) {
    const auto code = rule["code"].get<std::string>();
    EXPECT_LT(before, code);
    before = code;
    EXPECT_THAT(text.output, HasSubstr(code));
    const Result page = world.ampscope({"explain", code});
    EXPECT_EQ(page.status, 0) << code;
    EXPECT_THAT(page.output, HasSubstr(code));
    EXPECT_EQ(world.ampscope({"explain", rule["name"]}).output, page.output) << code;
  }
  const Result unknown = world.ampscope({"explain", "AMP2002"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("there is no rule 'AMP2002'; did you mean 'AMP202'?"));
  EXPECT_THAT(world.ampscope({"explain", "clip-before-unscal"}).errors, HasSubstr("'clip-before-unscale'"));
}

}  // namespace
}  // namespace ampscope::cli::testing
