#include "cli/app/program_words.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ampscope::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ProgramWords : public ::testing::Test {
 protected:
  ProgramWords() {
    app.add_option("-o,--output", output);
    app.add_flag("-f,--force", force);
    app.add_flag("-q", quiet);
  }
  std::vector<std::string> take(std::vector<std::string> words) {
    options = std::move(words);
    return take_program(app, options);
  }
  CLI::App app;
  std::string output;
  bool force = false;
  bool quiet = false;
  std::vector<std::string> options;  ///< what was left
};

TEST_F(ProgramWords, BeginBehindTheDashes) {
  EXPECT_THAT(take({"-o", "x", "--", "-o", "--", "y"}), ElementsAre("-o", "--", "y"));
  EXPECT_THAT(options, ElementsAre("-o", "x"));
  EXPECT_THAT(take({"--"}), IsEmpty());
  EXPECT_THAT(take({"--output", "--", "--", "y"}), ElementsAre("y"));  // the first -- is a file name
  EXPECT_THAT(options, ElementsAre("--output", "--"));
}

TEST_F(ProgramWords, BeginAtTheFirstWordThatIsNoOption) {
  EXPECT_THAT(take({"-f", "python", "-o", "y"}), ElementsAre("python", "-o", "y"));
  EXPECT_THAT(options, ElementsAre("-f"));
  EXPECT_THAT(take({"--output=x", "python"}), ElementsAre("python"));
  EXPECT_THAT(take({"-ox", "python"}), ElementsAre("python"));
  EXPECT_THAT(take({"-fqo", "x", "python"}), ElementsAre("python"));
  EXPECT_THAT(take({"-qf", "python"}), ElementsAre("python"));
  EXPECT_THAT(take({"-", "python"}), ElementsAre("-", "python"));
  EXPECT_THAT(take({"", "python"}), ElementsAre("", "python"));
}

TEST_F(ProgramWords, AreNoneWithoutAProgram) {
  EXPECT_THAT(take({}), IsEmpty());
  EXPECT_THAT(take({"-o", "x"}), IsEmpty());
  EXPECT_THAT(options, ElementsAre("-o", "x"));
  EXPECT_THAT(take({"-o"}), IsEmpty());
}

}  // namespace
}  // namespace ampscope::cli
