// Signals under `ampscope run`: what reaches the program, and how often.
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/cli/world.h"

namespace ampscope::cli::testing {
namespace {

using ::testing::HasSubstr;

char state_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t at = line.rfind(')');
  return at == std::string::npos || at + 2 >= line.size() ? '?' : line[at + 2];
}

void wait_for_state(pid_t process, char state) {
  for (int i = 0; i < 1000 && state_of(process) != state; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(state_of(process), state);
}

TEST(Signals, SentToTheCommandReachTheProgram) {
  const World world;
  for (const char* name : {"TERM", "INT", "HUP", "USR1"}) {
    Start start =
        world.start({"run", "--", "sh", "-c",
                     "trap 'echo got; exit 5' " + std::string(name) + "; echo ready; while :; do sleep 0.02; done"});
    start.when_ready = [&](pid_t command) {
      kill(command, std::string(name) == "TERM"  ? SIGTERM
                    : std::string(name) == "INT" ? SIGINT
                    : std::string(name) == "HUP" ? SIGHUP
                                                 : SIGUSR1);
    };
    const Result result = run(start);
    EXPECT_EQ(result.output, "ready\ngot\n") << name;
    EXPECT_EQ(result.status, 5) << name;
  }
}

TEST(Signals, ThatEndTheProgramDoNotEndTheSummary) {
  const World world;
  Start start =
      world.start({"run", "--", "sh", "-c", std::string(AMPSCOPE_FAKE_TRAINER) + "; echo ready; exec sleep 60"});
  start.when_ready = [](pid_t command) { kill(command, SIGTERM); };
  const Result result = run(start);
  EXPECT_EQ(result.status, 143);
  EXPECT_THAT(result.errors, HasSubstr("ampscope  3 steps"));
}

TEST(Signals, OfTheTerminalReachTheProgramOnce) {
  const World world;
  // Waits for the first SIGINT, then a second for more, and tells how many came. The short sleeps let traps run.
  const std::string program =
      "n=0; i=0; trap 'n=$((n+1))' INT; echo ready; while [ $n -eq 0 ]; do sleep 0.02; done; "
      "while [ $i -lt 50 ]; do sleep 0.02; i=$((i+1)); done; echo \"count $n\"; exit 9";
  const Start start = world.start({"run", "--", "sh", "-c", program});
  const Result result = run_on_terminal(start, "\x03");
  EXPECT_THAT(result.output, HasSubstr("count 1"));
  EXPECT_EQ(result.status, 9);
}

TEST(Signals, OfTheTerminalLeaveTheSummary) {
  const World world;
  const Start start =
      world.start({"run", "--", "sh", "-c", std::string(AMPSCOPE_FAKE_TRAINER) + "; echo ready; exec sleep 60"});
  const Result result = run_on_terminal(start, "\x03");
  EXPECT_EQ(result.status, 130);
  EXPECT_THAT(result.output, HasSubstr("3 steps"));
}

TEST(Signals, ThatAreIgnoredStayIgnored) {
  const World world;
  Start start = world.start({});
  start.command = {"sh", "-c", "trap '' HUP; exec \"$0\" run -- sh -c 'kill -HUP $$; kill -HUP $PPID; echo alive'",
                   AMPSCOPE_COMMAND};
  const Result result = run(start);
  EXPECT_EQ(result.output, "alive\n");
  EXPECT_EQ(result.status, 0);
}

TEST(Signals, StopAndContinueBoth) {
  const World world;
  pid_t program = 0;
  Start start = world.start({"run", "--", "sh", "-c", "echo $$ > pid; echo ready; sleep 0.5; exit 6"});
  start.when_ready = [&](pid_t command) {
    std::ifstream(world.work / "pid") >> program;
    kill(command, SIGTSTP);
    wait_for_state(command, 'T');
    wait_for_state(program, 'T');
    kill(command, SIGCONT);
  };
  EXPECT_EQ(run(start).status, 6);
  EXPECT_GT(program, 0);
}

TEST(Signals, AreNotBlockedInTheProgram) {
  const World world;
  const Result result = world.ampscope({"run", "--", "grep", "-E", "SigBlk|SigIgn|SigCgt", "/proc/self/status"});
  Start plain = world.start({});
  plain.command = {"grep", "-E", "SigBlk|SigIgn|SigCgt", "/proc/self/status"};
  EXPECT_EQ(result.output, run(plain).output);
}

}  // namespace
}  // namespace ampscope::cli::testing
