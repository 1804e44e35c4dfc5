// The command line: which verbs there are, and what becomes of mistakes.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "cli/app/context.h"

namespace ampscope::cli {

/// All verbs with their options, for parsing, help and completion. `actions` gets one action a verb, by name.
struct Application {
  Application();
  Context context;
  CLI::App app{"Finds what goes wrong with the numbers of a mixed-precision training, and says what to change."};
  std::map<std::string, Action> actions;
};

/// Runs `ampscope` with these arguments (without the program's name). Exit status 2, or 125 under `run`, for mistakes.
[[nodiscard]] int run_command_line(std::vector<std::string> arguments);

}  // namespace ampscope::cli
