// `ampscope run` as a process: what it leaves alone, what it refuses, what it says.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/world.h"
#include "trace/reader.h"

namespace ampscope::cli::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using std::string_literals::operator""s;

class RunCommand : public ::testing::Test {
 protected:
  void expect_refused(const std::vector<std::string>& arguments, const std::string& sentence) {
    const Result result = world.ampscope(arguments);
    EXPECT_EQ(result.status, 125) << result.errors;
    EXPECT_THAT(result.errors, StartsWith("ampscope run: "));
    EXPECT_THAT(result.errors, HasSubstr(sentence));
    EXPECT_EQ(std::count(result.errors.begin(), result.errors.end(), '\n'), 1) << result.errors;
    EXPECT_EQ(result.output, "");
  }
  World world;
};

TEST_F(RunCommand, ExitsAsTheProgram) {
  for (const int status : {0, 1, 7, 125, 255}) {
    EXPECT_EQ(world.ampscope({"run", "--", "sh", "-c", "exit " + std::to_string(status)}).status, status);
  }
}

TEST_F(RunCommand, ExitsWith128AndTheSignalThatEndedTheProgram) {
  EXPECT_EQ(world.ampscope({"run", "--", "sh", "-c", "kill -KILL $$"}).status, 137);
  EXPECT_EQ(world.ampscope({"run", "--", "sh", "-c", "kill -TERM $$"}).status, 143);
  EXPECT_EQ(world.ampscope({"run", "--", "sh", "-c", "kill -SEGV $$"}).status, 139);
}

TEST_F(RunCommand, LeavesStdinAndStdoutAlone) {
  Start start = world.start({"run", "--", "cat"});
  start.input = "\0\x01\xff\r\n no line break at the end"s;
  const Result result = run(start);
  EXPECT_EQ(result.output, start.input);
  EXPECT_EQ(result.status, 0);
}

TEST_F(RunCommand, LeavesArgumentsAlone) {
  const std::vector<std::string> arguments = {"-o", "--", "--level", "",   "[a,b]", "{}",
                                              "%%", "*",  "a b",     "-h", "--help"};
  std::vector<std::string> command = {"run", "--", "printf", "<%s>\n"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::string expected;
  for (const std::string& argument : arguments)
    expected += "<" + argument + ">\n";
  EXPECT_EQ(world.ampscope(command).output, expected);
}

TEST_F(RunCommand, TakesTheFirstWordThatIsNoOptionForTheProgram) {
  EXPECT_EQ(world.ampscope({"run", "--level", "ops", "-fq", "printf", "<%s>", "-o", "x", "--", "y"}).output,
            "<-o><x><--><y>");
  EXPECT_EQ(world.ampscope({"run", "-ox.ampscope", "--budget=2%", "printf", "<%s>", "--help"}).output, "<--help>");
}

TEST_F(RunCommand, GivesTheProgramItsEnvironment) {
  Start start = world.start(
      {"run", "-o", "a%p.ampscope", "--level", "full", "--budget", "2.5%", "--max-size", "1M", "--", "env", "-0"});
  start.environment["PYTHONPATH"] = "/one:" + world.lib.path() + "/python/bootstrap:/two";
  start.environment["LD_PRELOAD_KEPT"] = "yes";
  const Result result = run(start);
  const std::string all = std::string(1, '\0') + result.output;
  const auto value = [&](const std::string& name) {
    const std::string mark = std::string(1, '\0') + name + "=";
    const std::size_t at = all.find(mark);
    if (at == std::string::npos) return std::string("(unset)");
    return std::string(all.c_str() + at + mark.size());
  };
  EXPECT_EQ(value("AMPSCOPE_OUTPUT"), world.work.path() + "/a%p.ampscope");
  EXPECT_EQ(value("AMPSCOPE_LEVEL"), "full");
  EXPECT_EQ(value("AMPSCOPE_BUDGET"), "2.5");
  EXPECT_EQ(value("AMPSCOPE_MAX_SIZE"), "1048576");
  EXPECT_EQ(value("AMPSCOPE_CWD"), world.work.path());
  EXPECT_EQ(value("AMPSCOPE_LIB_DIR"), world.lib.path());
  EXPECT_THAT(value("AMPSCOPE_RUN_ID"), ContainsRegex("^[0-9a-f]{32}$"));
  EXPECT_EQ(nlohmann::json::parse(value("AMPSCOPE_COMMAND")), nlohmann::json({"env", "-0"}));
  EXPECT_EQ(value("PYTHONPATH"), world.lib.path() + "/python/bootstrap:/one:/two");
  EXPECT_EQ(value("LD_PRELOAD"), "(unset)");
  EXPECT_EQ(value("LD_PRELOAD_KEPT"), "yes");
}

TEST_F(RunCommand, EscapesPercentSignsOfTheFolder) {
  world.work.write("100%p/keep", "");
  Start start = world.start({"run", "--", "sh", "-c", "printf %s \"$AMPSCOPE_OUTPUT\""});
  start.directory = world.work / "100%p";
  EXPECT_EQ(run(start).output, world.work / "100%%p/run.ampscope");
}

TEST_F(RunCommand, RefusesWhatCannotBeStarted) {
  world.work.write("train.py", "print(1)\n");
  world.work.write("folder/x", "");
  expect_refused({"run", "--", "no-such-program-at-all"}, "'no-such-program-at-all': there is no such program in PATH");
  expect_refused({"run", "--", "./missing"}, "'./missing': there is no such file");
  expect_refused({"run", "--", "./folder"}, "it is a folder");
  expect_refused({"run", "--", "./train.py"}, "use: python ./train.py");
  expect_refused({"run", "--", "train.py"}, "use: python train.py");
  expect_refused({"run", "--", ""}, "cannot start ''");
  expect_refused({"run"}, "no program to run");
  expect_refused({"run", "--"}, "no program to run");
  EXPECT_THAT(world.work.names(), ElementsAre("folder", "train.py"));
}

TEST_F(RunCommand, RefusesWrongOptions) {
  expect_refused({"run", "--levl", "ops", "--", "true"}, "unknown option '--levl'; did you mean '--level'?");
  expect_refused({"run", "--level", "ful", "--", "true"},
                 "--level: 'ful' is not a level (ops, grads, auto, full, shadow)");
  expect_refused({"run", "--budget", "0", "--", "true"}, "--budget: '0' is not a percentage");
  expect_refused({"run", "--max-size", "12 apples", "--", "true"}, "--max-size: '12 apples' is not a size");
  expect_refused({"run", "--fail-on", "info", "--", "true"}, "--fail-on: 'info'");
  expect_refused({"run", "--select", "AMP2O2", "--", "true"},
                 "--select: there is no rule 'AMP2O2'; did you mean 'AMP202'?");
  expect_refused({"run", "--set", "AMP902.warn_share", "--", "true"}, "--set: 'AMP902.warn_share' is not of the form");
  expect_refused({"run", "--set", "AMP902.warn=1", "--", "true"}, "AMP902 has no parameter warn");
  expect_refused({"run", "-o", "missing/run.ampscope", "--", "true"}, "there is no folder");
  expect_refused({"run", "-o", "%p/run.ampscope", "--", "true"}, "not in the name of its folder");
  expect_refused({"run", "--html", "missing/run.html", "--", "true"}, "there is no folder missing");
  expect_refused({"run", "--level"}, "--level");
}

TEST_F(RunCommand, RefusesWithoutTheProbe) {
  Start start = world.start({"run", "--", "touch", "started"});
  start.environment["AMPSCOPE_LIB_DIR"] = world.work.path();
  const Result result = run(start);
  EXPECT_EQ(result.status, 125);
  EXPECT_THAT(result.errors, HasSubstr("ampscope doctor"));
  EXPECT_FALSE(world.work.has("started"));
}

TEST_F(RunCommand, NeverOverwritesATraceUnasked) {
  world.record("run.ampscope", {});
  const std::string before = world.work.read("run.ampscope");
  expect_refused({"run", "--", "touch", "started"},
                 "run.ampscope exists; choose another name with -o, or replace it with --force");
  EXPECT_FALSE(world.work.has("started"));
  EXPECT_EQ(world.work.read("run.ampscope"), before);
}

TEST_F(RunCommand, TakesTracesOfFurtherProcessesForInTheWay) {
  world.record("old.ampscope", {});
  std::filesystem::rename(world.work / "old.ampscope", world.work / "run.rank3.ampscope");
  expect_refused({"run", "--", "true"}, "run.rank3.ampscope exists");
  EXPECT_EQ(world.train({"--force", "-q"}, {}).status, 0);
  EXPECT_THAT(world.work.names(), ElementsAre("run.ampscope"));
}

TEST_F(RunCommand, ForceReplacesTracesAndNothingElse) {
  world.work.write("train.py", "print('precious')\n");
  world.work.write("run.rank1.ampscope", "notes about rank 1");
  expect_refused({"run", "-o", "train.py", "--force", "--", "true"},
                 "train.py is no trace, so --force does not replace it");
  EXPECT_EQ(world.work.read("train.py"), "print('precious')\n");
  EXPECT_EQ(world.train({"-q"}, {}).status, 0);  // a file with a similar name is not in the way
  EXPECT_EQ(world.work.read("run.rank1.ampscope"), "notes about rank 1");
  EXPECT_EQ(world.train({"-q", "--force"}, {"steps=5"}).status, 0);
  EXPECT_EQ(world.work.read("run.rank1.ampscope"), "notes about rank 1");
}

TEST_F(RunCommand, SummarisesOnStderrAndNamesTheNextCommand) {
  const Result result = world.train({}, {});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, "");
  EXPECT_THAT(result.errors, HasSubstr("ampscope  3 steps"));
  EXPECT_THAT(result.errors, HasSubstr("clean: 3 steps, 0 ops, 1 parameter watched"));
  EXPECT_TRUE(result.errors.ends_with("next: ampscope report run.ampscope --format html -o run.html\n"))
      << result.errors;
  EXPECT_THAT(result.errors, Not(HasSubstr("\x1b")));
  EXPECT_THAT(world.work.names(), ElementsAre("run.ampscope"));
}

TEST_F(RunCommand, SaysNothingWhenQuiet) {
  const Result result = world.train({"--quiet"}, {"dropped=500"});
  EXPECT_EQ(result.errors, "");
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.status, 0);
}

TEST_F(RunCommand, NotesTheExitStatusInEveryTrace) {
  EXPECT_EQ(world.train({"-q"}, {"ranks=3", "exit=4"}).status, 4);
  EXPECT_THAT(world.work.names(), ElementsAre("run.ampscope", "run.rank1.ampscope", "run.rank2.ampscope"));
  for (const std::string& name : world.work.names()) {
    const auto read = trace::read_trace(world.work / name);
    ASSERT_TRUE(std::holds_alternative<trace::Trace>(read)) << name;
    ASSERT_TRUE(std::get<trace::Trace>(read).exit.has_value()) << name;
    EXPECT_EQ(std::get<trace::Trace>(read).exit->status, 4) << name;
    EXPECT_FALSE(std::get<trace::Trace>(read).damage.any()) << name;
  }
}

TEST_F(RunCommand, ReportsAllProcessesAsOneRun) {
  const Result result = world.train({}, {"ranks=2", "signal=9"});
  EXPECT_EQ(result.status, 137);
  EXPECT_THAT(result.errors, HasSubstr("2 ranks"));
  EXPECT_THAT(result.errors, HasSubstr("exit status 137"));
}

TEST_F(RunCommand, FindsTracesWhoseNameHasThePid) {
  const Result result = world.train({"-o", "t-%p.ampscope"}, {});
  EXPECT_THAT(result.errors, ContainsRegex("next: ampscope report t-[0-9]+.ampscope "));
}

TEST_F(RunCommand, IgnoresTracesOfOtherRuns) {
  world.record("other.ampscope", {"steps=50"});
  EXPECT_THAT(world.train({}, {"steps=2"}).errors, HasSubstr("ampscope  2 steps"));
}

TEST_F(RunCommand, ChecksWhenAsked) {
  EXPECT_EQ(world.train({"--check", "-q"}, {}).status, 0);
  EXPECT_EQ(world.train({"--check", "-qf"}, {"dropped=500"}).status, 1);
  EXPECT_EQ(world.train({"--check", "-qf", "--fail-on", "error"}, {"dropped=500"}).status, 0);
  EXPECT_EQ(world.train({"-qf"}, {"dropped=500"}).status, 0);
  EXPECT_EQ(world.train({"--check", "-qf"}, {"dropped=500", "exit=3"}).status, 3) << "the program's status comes first";
  EXPECT_EQ(world.train({"--check", "-qf", "--ignore", "AMP902"}, {"dropped=500"}).status, 0);
  EXPECT_EQ(world.train({"--check", "-qf", "--set", "AMP902.warn_share=0.9"}, {"dropped=500"}).status, 0);
}

TEST_F(RunCommand, DoesNotTakeSilenceForHealth) {
  EXPECT_EQ(world.train({"--check", "-q"}, {"trace=no"}).status, 2);
  EXPECT_EQ(world.train({"--check", "-qf"}, {"steps=0"}).status, 2);
  const Result result = world.train({"-f"}, {"steps=0"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.errors, HasSubstr("nothing to judge"));
}

TEST_F(RunCommand, SaysWhyNoTrainingWasSeen) {
  EXPECT_THAT(world.ampscope({"run", "--", "true"}).errors, StartsWith("ampscope: no training was seen: "));
  const Result told = world.train({}, {"trace=no", "notice=torch 2.9.0 is not supported; use torch 2.11 to 2.15"});
  EXPECT_EQ(told.errors, "ampscope: no training was seen: torch 2.9.0 is not supported; use torch 2.11 to 2.15\n");
  // A Python that keeps us out; `true` under that name will do.
  std::filesystem::create_symlink("/bin/true", world.work / "python3.11");
  EXPECT_THAT(world.ampscope({"run", "--", "./python3.11", "-BI", "train.py"}).errors, HasSubstr("started with -BI"));
}

TEST_F(RunCommand, TellsOfProcessesThatWereNotWatched) {
  const Result result = world.train({}, {"notice=no adapter for torch 2.12"});
  EXPECT_THAT(result.errors, HasSubstr("one of the processes was not watched: no adapter for torch 2.12"));
  EXPECT_THAT(result.errors, HasSubstr("clean: 3 steps"));
}

TEST_F(RunCommand, RemovesItsStatusFile) {
  Start start = world.start(
      {"run", "--", "sh", "-c", "test -w \"$AMPSCOPE_STATUS_FILE\" && printf %s \"$AMPSCOPE_STATUS_FILE\""});
  const Result result = run(start);
  EXPECT_EQ(result.status, 0);
  ASSERT_NE(result.output, "");
  EXPECT_FALSE(std::filesystem::exists(result.output));
}

TEST_F(RunCommand, ReportsATraceThatWasCut) {
  const Result result = world.train({}, {"cut=5"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.errors, HasSubstr("ampscope  3 steps"));
}

TEST_F(RunCommand, TakesOptionsFromTheEnvironmentAndTheFile) {
  world.work.write("ampscope.toml", "[run]\nlevel = \"grads\"\nmax_size = \"2M\"\n[rules.AMP902]\nwarn_share = 0.9\n");
  Start start = world.start({"run", "--", "sh", "-c", "echo $AMPSCOPE_LEVEL $AMPSCOPE_MAX_SIZE"});
  EXPECT_EQ(run(start).output, "grads 2097152\n");
  start.environment["AMPSCOPE_LEVEL"] = "ops";
  EXPECT_EQ(run(start).output, "ops 2097152\n");
  start.command.insert(start.command.begin() + 2, {"--level", "full"});
  EXPECT_EQ(run(start).output, "full 2097152\n");
  EXPECT_EQ(world.train({"--check", "-q"}, {"dropped=500"}).status, 0);
}

TEST_F(RunCommand, NamesTheSourceOfAWrongValue) {
  Start start = world.start({"run", "--", "true"});
  start.environment["AMPSCOPE_LEVEL"] = "everything";
  EXPECT_THAT(run(start).errors, HasSubstr("AMPSCOPE_LEVEL: 'everything' is not a level"));
  world.work.write("ampscope.toml", "[run]\nlevel = \"everything\"\n");
  EXPECT_THAT(world.ampscope({"run", "--", "true"}).errors, HasSubstr("ampscope.toml: run.level: 'everything'"));
  world.work.write("ampscope.toml", "[run]\n\nlevle = \"ops\"\n");
  const Result result = world.ampscope({"run", "--", "true"});
  EXPECT_THAT(result.errors, HasSubstr("ampscope.toml:3: there is no setting 'run.levle'; did you mean 'run.level'?"));
  EXPECT_EQ(result.status, 125);
}

TEST_F(RunCommand, WithinARunIsARunOfItsOwn) {
  const Result result = world.ampscope({"run", "-o", "outer.ampscope", "--", AMPSCOPE_COMMAND, "run", "-o",
                                        "inner.ampscope", "--", AMPSCOPE_FAKE_TRAINER});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(world.work.names(), ElementsAre("inner.ampscope"));
  EXPECT_THAT(result.errors, HasSubstr("clean: 3 steps"));
}

}  // namespace
}  // namespace ampscope::cli::testing
