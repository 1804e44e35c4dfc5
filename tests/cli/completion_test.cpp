// The completion scripts, run by the shells they are for.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/world.h"

namespace ampscope::cli::testing {
namespace {

using ::testing::HasSubstr;

class Completion : public ::testing::Test {
 protected:
  Completion() {
    for (const char* shell : {"bash", "zsh", "fish"}) {
      const Result result = world.ampscope({"completion", shell});
      EXPECT_EQ(result.status, 0);
      world.work.write(shell, result.output);
    }
    world.work.write("run.ampscope", "");
  }
  Result shell(const std::vector<std::string>& command) const {
    Start start = world.start({});
    start.command = command;
    return run(start);
  }
  bool has_shell(const std::string& name) const { return shell({"sh", "-c", "command -v " + name}).status == 0; }
  /// What bash offers for the last of `words`.
  std::string offers(const std::string& words) const {
    const Result result =
        shell({"bash", "-c",
               "source ./bash; COMP_WORDS=(" + words +
                   "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _ampscope; printf '<%s>' \"${COMPREPLY[@]}\""});
    EXPECT_EQ(result.errors, "");
    return result.output;
  }
  World world;
};

TEST_F(Completion, IsWellFormed) {
  ASSERT_TRUE(has_shell("bash"));
  for (const char* name : {"bash", "zsh", "fish"}) {
    if (!has_shell(name)) continue;
    const Result result = shell({name, "-n", name});
    EXPECT_EQ(result.status, 0) << name;
    EXPECT_EQ(result.errors, "") << name;
  }
}

TEST_F(Completion, OffersVerbsOptionsAndValues) {
  EXPECT_EQ(offers("ampscope rep"), "<report>");
  EXPECT_THAT(offers("ampscope ''"), HasSubstr("<doctor>"));
  EXPECT_EQ(offers("ampscope report --for"), "<--format><--force>");
  EXPECT_EQ(offers("ampscope report --format js"), "<json>");
  EXPECT_EQ(offers("ampscope run --level ''"), "<ops><grads><auto><full><shadow>");
  EXPECT_EQ(offers("ampscope report run.a"), "<run.ampscope>");
  EXPECT_EQ(offers("ampscope explain AMP90"), "<AMP901><AMP902>");
  EXPECT_EQ(offers("ampscope completion f"), "<fish>");
  EXPECT_THAT(offers("ampscope run bas"), HasSubstr("<bash>"));
}

TEST_F(Completion, KnowsWhatTheHelpKnows) {
  for (const char* verb : {"run", "report", "check", "tune", "explain", "rules", "info", "doctor"}) {
    const std::string help = world.ampscope({verb, "--help"}).output;
    for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
      const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      const std::string option = help.substr(at, end - at);
      if (option == "--" || option == "--nproc-per-node" || option == "--epochs") continue;  // of an example
      if (option == "--check" && std::string(verb) != "run") continue;
      EXPECT_THAT(offers(std::string("ampscope ") + verb + " --"), HasSubstr("<" + option + ">")) << verb;
      EXPECT_THAT(world.work.read("fish"), HasSubstr(" -l " + option.substr(2))) << verb;
      EXPECT_THAT(world.work.read("zsh"), HasSubstr("'" + option + "[")) << verb;
    }
  }
}

TEST_F(Completion, RefusesOtherShells) {
  const Result result = world.ampscope({"completion", "fis"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.errors, HasSubstr("did you mean 'fish'?"));
  EXPECT_EQ(world.ampscope({"completion"}).status, 2);
}

}  // namespace
}  // namespace ampscope::cli::testing
