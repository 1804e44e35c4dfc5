// The names of the traces of one run: the one that was asked for, and those that further training processes make of it.
#pragma once

#include <string>
#include <vector>

namespace ampscope::cli {

class OutputName {
 public:
  /// `typed` as given to -o: a path, in whose file name %p, %r and %h stand for pid, rank and host, and %% for %.
  /// Relative to `directory`. Throws UserError when the folder's name has a placeholder that differs between processes.
  OutputName(const std::string& typed, const std::string& directory);

  /// What AMPSCOPE_OUTPUT is set to: absolute, placeholders still in it.
  [[nodiscard]] const std::string& pattern() const { return pattern_; }
  /// The folder all traces of the run lie in.
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// The path itself, where it is the same for every process; "" where pid or rank are part of it.
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Whether a file called `name` in the folder can be a trace of a run with this output: run.ampscope,
  /// run.rank1.ampscope, run.4711.ampscope, run.rank1.4711.ampscope.
  [[nodiscard]] bool matches(const std::string& name) const;

  /// Paths of the files in the folder that match, in order.
  [[nodiscard]] std::vector<std::string> existing() const;

 private:
  std::string pattern_;
  std::string folder_;
  std::string path_;
  std::string expression_;  ///< regular expression for the name
};

}  // namespace ampscope::cli
