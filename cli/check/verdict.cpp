#include "cli/check/verdict.h"

#include <algorithm>
#include <string>

#include "cli/settings/values.h"

namespace ampscope::cli {

analyzers::Severity parse_fail_on(std::string_view text, std::string_view where) {
  // Not info: what the scaler does by design is no reason to fail.
  const std::string name = parse_choice(text, {"warning", "error"}, "severity a check can fail on", where);
  return parse_severity(name, where);
}

bool fails(const analyzers::Report& report, analyzers::Severity threshold) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const analyzers::Finding& finding) { return finding.severity >= threshold; });
}

}  // namespace ampscope::cli
