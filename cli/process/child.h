// Runs the user's program as a shell would run it: same terminal, same process group, same signals.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace ampscope::cli {

struct ChildResult {
  bool started = false;
  std::string error;  ///< why it could not be started
  int status = 0;     ///< as a shell sees it: the exit status, or 128 + the signal that ended it
};

/// Runs `command` with `changes` made to this process's environment (an empty value is set as such) and waits for its
/// end.
///
/// A signal that somebody sends to this process alone (SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP,
/// SIGCONT) is passed on to the program; one that the terminal sends has reached the program already, since both are in
/// the same process group. Neither ends this process, so that it can still report afterwards. Signals that were ignored
/// stay ignored, as under nohup.
[[nodiscard]] ChildResult run_child(const std::vector<std::string>& command,
                                    const std::map<std::string, std::string>& changes);

}  // namespace ampscope::cli
