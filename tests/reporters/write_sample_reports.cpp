// Writes every sample report in the formats that have a schema, for validate_reports.py.
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "reporters/ci/junit.h"
#include "reporters/ci/sarif.h"
#include "reporters/json/json_report.h"
#include "tests/reporters/sample_reports.h"

int main(int argc, char** argv) {
  namespace reporters = ampscope::reporters;
  namespace samples = ampscope::reporters::testing;
  if (argc != 2) {
    std::fputs("usage: write_sample_reports FOLDER\n", stderr);
    return 2;
  }
  const std::vector<reporters::RuleEntry> rules = {
      {"AMP202", "clip-before-unscale", "clipped while scaled", ampscope::analyzers::Severity::error},
      {"AMP501", "grad-underflow", "flushed to zero", ampscope::analyzers::Severity::warning}};
  const std::vector<std::pair<std::string, ampscope::analyzers::Report>> reports = {
      {"clipped_while_scaled", samples::clipped_while_scaled()},
      {"healthy", samples::healthy()},
      {"overflow_with_chain", samples::overflow_with_chain()},
      {"many_findings", samples::many_findings()},
      {"nothing_seen", samples::nothing_seen()},
      {"hostile", samples::hostile()},
      {"two_scalers", samples::two_scalers()}};
  for (const auto& [name, report] : reports) {
    const std::string path = std::string(argv[1]) + "/" + name;
    std::ofstream(path + ".json") << reporters::render_json(report);
    std::ofstream(path + ".sarif") << reporters::render_sarif(report, rules);
    std::ofstream(path + ".xml") << reporters::render_junit(report, rules);
  }
  return 0;
}
