// The report for a person at a terminal: what is wrong, where, how we know, what to type.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "analyzers/core/report.h"

namespace ampscope::reporters {

struct TerminalOptions {
  int width = 80;  ///< columns; less than 40 counts as 40
  bool colour = false;
  bool all = false;      ///< every finding in full, not only the first five errors and warnings
  std::string next;      ///< the command to run next, "" for none
  std::string show_all;  ///< the command that shows the findings that were left out
  /// Text of a source line; by default it is read from the file.
  std::function<std::optional<std::string>(const trace::SourceLine&)> read_source;
};

[[nodiscard]] std::string render_terminal(const analyzers::Report& report, const TerminalOptions& options);

}  // namespace ampscope::reporters
