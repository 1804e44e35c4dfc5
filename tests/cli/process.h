// Starts the built command the way a person or a script does and watches what comes out.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace ampscope::cli::testing {

struct Start {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  ///< changes to ours; every AMPSCOPE_* of ours is taken out first
  std::string directory;                           ///< "": ours
  std::string input;                               ///< what stdin holds
  /// Called once with the pid as soon as stdout holds "ready".
  std::function<void(pid_t)> when_ready;
};

struct Result {
  int status = 0;      ///< exit status, or -signal when a signal ended it
  std::string output;  ///< stdout; on a terminal stdout and stderr together
  std::string errors;  ///< stderr
};

/// With pipes. Ends the process and says so in `errors` when it takes more than a minute.
[[nodiscard]] Result run(const Start& start);

/// On a terminal of its own, 100 columns wide, as its foreground process group. `typed` is typed once "ready" has
/// appeared.
[[nodiscard]] Result run_on_terminal(const Start& start, const std::string& typed);

/// A folder of its own for a test, removed at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  void write(const std::string& name, const std::string& content) const;
  [[nodiscard]] std::string read(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  /// Names of what lies in it, in order.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::string path_;
};

}  // namespace ampscope::cli::testing
