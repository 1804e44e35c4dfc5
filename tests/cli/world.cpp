#include "tests/cli/world.h"

#include <stdexcept>

namespace ampscope::cli::testing {

World::World() {
  // The Python part alone: a preload stub that is no library would make every program complain.
  lib.write("python/bootstrap/sitecustomize.py", "");
}

Start World::start(const std::vector<std::string>& arguments) const {
  Start start;
  start.command = {AMPSCOPE_COMMAND};
  start.command.insert(start.command.end(), arguments.begin(), arguments.end());
  start.environment = {{"AMPSCOPE_LIB_DIR", lib.path()}, {"TMPDIR", temporary_.path()}};
  start.directory = work.path();
  return start;
}

Result World::ampscope(const std::vector<std::string>& arguments) const {
  return run(start(arguments));
}

Result World::train(const std::vector<std::string>& options, const std::vector<std::string>& settings) const {
  std::vector<std::string> arguments = {"run"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", AMPSCOPE_FAKE_TRAINER});
  arguments.insert(arguments.end(), settings.begin(), settings.end());
  return ampscope(arguments);
}

void World::record(const std::string& name, const std::vector<std::string>& settings) const {
  const Result result = train({"-q", "-o", name}, settings);
  if (result.status != 0 || !work.has(name)) throw std::runtime_error("no trace: " + result.errors);
}

}  // namespace ampscope::cli::testing
