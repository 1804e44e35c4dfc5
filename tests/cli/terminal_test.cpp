// What differs on a terminal: colour, width, redrawn lines, and files that do not belong on a screen.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/world.h"

namespace ampscope::cli::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OnATerminal : public ::testing::Test {
 protected:
  void SetUp() override { world.record("run.ampscope", {"dropped=500"}); }
  Start report() const {
    Start start = world.start({"report", "run.ampscope"});
    start.environment["TERM"] = "xterm-256color";
    return start;
  }
  World world;
};

TEST_F(OnATerminal, ReportsAreInColour) {
  EXPECT_THAT(run_on_terminal(report(), "").output, HasSubstr("\x1b[1;33mwarning\x1b[0m"));
  EXPECT_THAT(run(report()).output, Not(HasSubstr("\x1b")));
}

TEST_F(OnATerminal, ColourFollowsTheUsualVariables) {
  Start start = report();
  start.environment["NO_COLOR"] = "1";
  EXPECT_THAT(run_on_terminal(start, "").output, Not(HasSubstr("\x1b")));
  start = report();
  start.environment["TERM"] = "dumb";
  EXPECT_THAT(run_on_terminal(start, "").output, Not(HasSubstr("\x1b")));
  for (const char* variable : {"FORCE_COLOR", "CLICOLOR_FORCE"}) {
    start = report();
    start.environment[variable] = "1";
    EXPECT_THAT(run(start).output, HasSubstr("\x1b[")) << variable;
    start.environment[variable] = "0";
    EXPECT_THAT(run(start).output, Not(HasSubstr("\x1b"))) << variable;
  }
}

TEST_F(OnATerminal, ReportsAreAsWideAsIt) {
  // The title line ends with the steps, in the last column: 100 here, 80 without a terminal, COLUMNS before both.
  const auto width = [](const std::string& text) {
    const std::size_t at = text.find("steps 0–2");
    EXPECT_NE(at, std::string::npos) << text;
    return at - text.rfind('\n', at) - 1 + 9;  // columns up to there; the dash is one column wide
  };
  Start start = report();
  start.environment["NO_COLOR"] = "1";
  EXPECT_EQ(width(run_on_terminal(start, "").output), 100U);
  EXPECT_EQ(width(run(start).output), 80U);
  start.environment["COLUMNS"] = "60";
  EXPECT_EQ(width(run(start).output), 60U);
}

TEST_F(OnATerminal, AnHtmlReportNeedsAFile) {
  const Start start = world.start({"report", "run.ampscope", "--format", "html"});
  const Result result = run_on_terminal(start, "");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.output, HasSubstr("-o run.html"));
}

TEST_F(OnATerminal, TheProgramOfARunStillHasIt) {
  EXPECT_THAT(run_on_terminal(
                  world.start({"run", "-fq", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo tty"}), "")
                  .output,
              HasSubstr("tty"));
}

}  // namespace
}  // namespace ampscope::cli::testing
