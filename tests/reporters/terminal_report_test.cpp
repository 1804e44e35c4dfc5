#include "reporters/terminal/terminal_report.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "reporters/common/text.h"
#include "reporters/terminal/chain_lines.h"
#include "reporters/terminal/source_text.h"
#include "tests/reporters/sample_reports.h"

namespace ampscope::reporters {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::optional<std::string> fake_source(const trace::SourceLine& source) {
  if (source.file.ends_with("train.py")) return "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)";
  if (source.file.ends_with("attention.py")) return "scores = q @ k.transpose(-2, -1) * self.scale";
  return std::nullopt;
}

TerminalOptions options(int width) {
  TerminalOptions options;
  options.width = width;
  options.next = "ampscope report run.ampscope --format html -o run.html";
  options.show_all = "ampscope report run.ampscope --all";
  options.read_source = fake_source;
  return options;
}

/// Compares with tests/reporters/golden/<name>.txt. With AMPSCOPE_UPDATE_GOLDEN=1 the file is written instead: read the
/// difference before it is committed.
void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(AMPSCOPE_GOLDEN_DIR) + "/" + name + ".txt";
  if (std::getenv("AMPSCOPE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << " is missing";
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << path;
}

class TerminalAtWidth : public ::testing::TestWithParam<int> {};

TEST_P(TerminalAtWidth, MatchesItsSnapshots) {
  const int width = GetParam();
  const auto check = [&](const char* name, const analyzers::Report& report) {
    const std::string text = render_terminal(report, options(width));
    expect_golden(fmt::format("{}_{}", name, width), text);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), width) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  };
  check("clipped_while_scaled", testing::clipped_while_scaled());
  check("healthy", testing::healthy());
  check("overflow_with_chain", testing::overflow_with_chain());
  check("many_findings", testing::many_findings());
  check("nothing_seen", testing::nothing_seen());
}

INSTANTIATE_TEST_SUITE_P(Widths, TerminalAtWidth, ::testing::Values(60, 80, 120));

TEST(TerminalReport, PaintsOnlyWhenAsked) {
  TerminalOptions coloured = options(80);
  EXPECT_THAT(render_terminal(testing::clipped_while_scaled(), coloured), Not(HasSubstr("\x1b")));
  coloured.colour = true;
  const std::string text = render_terminal(testing::clipped_while_scaled(), coloured);
  EXPECT_THAT(text, HasSubstr("\x1b[1;31merror\x1b[0m"));
  // Colour must not move anything.
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b') {
      at = text.find('m', at);
    } else {
      plain += text[at];
    }
  }
  EXPECT_EQ(plain, render_terminal(testing::clipped_while_scaled(), options(80)));
}

TEST(TerminalReport, NamesCannotCommandTheTerminal) {
  for (const int width : {40, 80, 120}) {
    const std::string text = render_terminal(testing::hostile(), options(width));
    for (const char* forbidden : {"\x1b", "\x07", "\r", "\x01", "\xC2\x9B", "\xE2\x80\xAE", "\xff"}) {
      EXPECT_THAT(text, Not(HasSubstr(forbidden)));
    }
    EXPECT_THAT(text, HasSubstr("\\x1b]0;owned\\x07"));
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(TerminalReport, ShowsAtMostFiveFindingsInFull) {
  const std::string text = render_terminal(testing::many_findings(), options(80));
  EXPECT_THAT(text, HasSubstr("layers.4.weight"));
  EXPECT_THAT(text, Not(HasSubstr("layers.5.weight")));
  EXPECT_THAT(text, HasSubstr("3 more findings: ampscope report run.ampscope --all"));
  EXPECT_THAT(text, HasSubstr("3 errors · 5 warnings · 1 note"));

  TerminalOptions all = options(80);
  all.all = true;
  const std::string everything = render_terminal(testing::many_findings(), all);
  EXPECT_THAT(everything, HasSubstr("layers.7.weight"));
  EXPECT_THAT(everything, HasSubstr("AMP301"));
  EXPECT_THAT(everything, Not(HasSubstr("more finding")));
}

TEST(TerminalReport, SaysWhatABudgetCostAndLeftOut) {
  analyzers::Report report = testing::clipped_while_scaled();
  analyzers::BudgetSummary budget;
  budget.percent = 2;
  budget.operator_steps = 40;
  budget.cost_percent = 1.25;
  report.run.budget = budget;
  const std::string text = render_terminal(report, options(200));
  EXPECT_THAT(text, HasSubstr("cost 1.2 % of a budget of 2 %"));
  EXPECT_THAT(text, HasSubstr("not looked at: operators in 372 of 412 steps (the budget draws steps)"));
}

TEST(TerminalReport, NotesOfAHealthyRunAreOneLineEach) {
  analyzers::Report report = testing::clipped_while_scaled();
  report.findings.erase(report.findings.begin());
  report.verdict = analyzers::Verdict::info;
  const std::string text = render_terminal(report, options(120));
  EXPECT_THAT(text, HasSubstr("clean: 412 steps, 96 ops, 24 parameters watched, 61 rules\nnote AMP301  "));
  EXPECT_THAT(text, Not(HasSubstr("fix")));
}

TEST(TerminalReport, TellsCppProgramsTheirOwnFix) {
  analyzers::Report report = testing::clipped_while_scaled();
  report.run.language = "c++";
  EXPECT_THAT(render_terminal(report, options(80)), HasSubstr("scaler.unscale_(optimizer);"));
}

TEST(TerminalReport, SaysWhenPrecisionIsNotToBlame) {
  analyzers::Report report = testing::clipped_while_scaled();
  report.findings[0].rule = "AMP603";
  report.findings[0].precision_fault = false;
  report.findings[0].same_in_fp32 = true;
  EXPECT_THAT(render_terminal(report, options(80)), HasSubstr("the same happens in fp32"));
  report.findings[0].same_in_fp32 = false;  // a kernel's fault
  EXPECT_THAT(render_terminal(report, options(80)), Not(HasSubstr("the same happens in fp32")));
}

TEST(ChainLines, AreAtMostFive) {
  const auto chain = testing::overflow_with_chain().findings[0].chain;
  const auto lines = chain_lines(chain, "/project/digits", 104);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines.front(), HasSubstr("overflows"));
  EXPECT_THAT(lines[3], HasSubstr("3 more"));
  EXPECT_THAT(lines.back(), HasSubstr("loss"));
  EXPECT_EQ(chain_lines({chain.begin(), chain.begin() + 5}, "", 104).size(), 5U);
  EXPECT_TRUE(chain_lines({}, "", 104).empty());
}

class SourceText : public ::testing::Test {
 protected:
  void SetUp() override {
    // Tests run side by side, each in a process of its own.
    path_ = ::testing::TempDir() + "/source_text_" + std::to_string(getpid()) + ".py";
    std::ofstream(path_) << "first\n    second\t\n\x1b[2Jthird\n\n";
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(SourceText, ReadsALine) {
  EXPECT_EQ(read_source_text({path_, 2, ""}, 0), "second");
  EXPECT_EQ(read_source_text({path_, 3, ""}, 0), "\\x1b[2Jthird");
}

TEST_F(SourceText, IsNothingWhereThereIsNone) {
  EXPECT_EQ(read_source_text({path_, 4, ""}, 0), std::nullopt);
  EXPECT_EQ(read_source_text({path_, 99, ""}, 0), std::nullopt);
  EXPECT_EQ(read_source_text({path_, 0, ""}, 0), std::nullopt);
  EXPECT_EQ(read_source_text({path_ + ".missing", 1, ""}, 0), std::nullopt);
  EXPECT_EQ(read_source_text({"/dev/zero", 1, ""}, 0), std::nullopt);
}

TEST_F(SourceText, IsNothingOnceTheFileWasChanged) {
  constexpr std::int64_t second = 1'000'000'000;
  EXPECT_EQ(read_source_text({path_, 1, ""}, second), std::nullopt);             // recorded in 1970, written now
  EXPECT_EQ(read_source_text({path_, 1, ""}, 4'000'000'000 * second), "first");  // recorded long after
}

}  // namespace
}  // namespace ampscope::reporters
