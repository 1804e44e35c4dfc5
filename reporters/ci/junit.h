// JUnit XML, as test dashboards take it.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/report.h"
#include "reporters/ci/rule_entry.h"

namespace ampscope::reporters {

/// One test case for each of `rules`: failed where it has errors or warnings, skipped where it was not evaluated. Notes
/// do not fail a case; they are its system-out.
[[nodiscard]] std::string render_junit(const analyzers::Report& report, const std::vector<RuleEntry>& rules);

}  // namespace ampscope::reporters
