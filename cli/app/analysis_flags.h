// The options that choose what is looked for, the same for every verb that analyses.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/engine.h"
#include "cli/app/context.h"
#include "cli/settings/settings.h"

namespace ampscope::cli {

class AnalysisFlags {
 public:
  void declare(CLI::App& app);
  /// With environment and ampscope.toml taken into account. Throws UserError for a rule or parameter that does not
  /// exist.
  [[nodiscard]] analyzers::AnalysisOptions options(const Settings& settings) const;

 private:
  Flag select_;
  Flag ignore_;
  Flag min_severity_;
  std::vector<std::string> set_;
};

/// Codes and names of all rules.
[[nodiscard]] std::vector<std::string> rule_words();

}  // namespace ampscope::cli
