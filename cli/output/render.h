// A report in one of the formats.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/report.h"
#include "reporters/ci/rule_entry.h"

namespace ampscope::cli {

struct RenderOptions {
  std::string format = "terminal";  ///< one of format_names()
  int width = 80;
  bool colour = false;
  bool all = false;
  std::string next;
  std::string show_all;
};

/// Throws UserError when this build cannot make the format.
void check_format(const std::string& format);

/// Throws UserError when this build cannot make the format.
[[nodiscard]] std::string render(const analyzers::Report& report, const RenderOptions& options);

/// Every rule of this build, for the formats that list them.
[[nodiscard]] std::vector<reporters::RuleEntry> rule_entries();

/// `words` as a command line that a shell takes apart into the same words.
[[nodiscard]] std::string shell_command(const std::vector<std::string>& words);

}  // namespace ampscope::cli
