// SARIF 2.1.0 (OASIS standard), as code-scanning services take it.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/report.h"
#include "reporters/ci/rule_entry.h"

namespace ampscope::reporters {

/// One run with one result a finding. Rule ids are the codes; files lie relative to the folder the program was started
/// in (the uriBase "SRCROOT"); `partialFingerprints` keep a finding the same from run to run. `rules`: all that exist.
[[nodiscard]] std::string render_sarif(const analyzers::Report& report, const std::vector<RuleEntry>& rules);

}  // namespace ampscope::reporters
