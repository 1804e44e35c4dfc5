// The options of the verbs that read traces and write a report.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/report.h"
#include "cli/app/analysis_flags.h"
#include "cli/app/context.h"
#include "cli/settings/settings.h"

namespace ampscope::cli {

class ReportFlags {
 public:
  void declare(CLI::App& app);
  /// Reads the traces and those of the same run beside them, analyses them, and says on stderr what is worth saying.
  [[nodiscard]] analyzers::Report analyse(const Settings& settings) const;
  /// Checks format and output file, so that a mistake in them shows before a long analysis.
  void check_output(const Settings& settings) const;
  /// Writes the report to -o or stdout.
  void write(const analyzers::Report& report, const Settings& settings) const;
  [[nodiscard]] bool force() const { return force_; }

 private:
  std::vector<std::string> traces_;
  Flag format_;
  Flag output_;
  bool force_ = false;
  bool all_ = false;
  AnalysisFlags analysis_;
};

}  // namespace ampscope::cli
