// From traces to a report.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyzers/core/report.h"
#include "trace/trace.h"

namespace ampscope::analyzers {

struct AnalysisOptions {
  /// Rule parameters that differ from their defaults: {"AMP302", {{"min_skips", 6}}}.
  std::map<std::string, std::map<std::string, double>> parameters = {};
  std::vector<std::string> select = {};    ///< codes, beginnings of codes or names of the rules to use; empty: all
  std::vector<std::string> ignore = {};    ///< the same, of rules not to use
  Severity min_severity = Severity::info;  ///< findings below are left out of the report
};

/// What is wrong with the options, one sentence each with what to do: a rule or parameter that does not exist, a value
/// out of range. Empty when nothing is. analyze() uses what is right in them.
[[nodiscard]] std::vector<std::string> check_options(const AnalysisOptions& options);

/// Analyses the traces of one run: one for each training process, in any order. No I/O; the same traces give the same
/// report. An empty vector gives an empty report.
[[nodiscard]] Report analyze(const std::vector<trace::Trace>& traces, const AnalysisOptions& options = {});

}  // namespace ampscope::analyzers
