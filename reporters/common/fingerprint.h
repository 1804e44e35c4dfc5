// A name for a finding that stays the same from run to run, so that a baseline or a code-scanning service can tell a
// known finding from a new one.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/report.h"

namespace ampscope::reporters {

/// Sixteen hexadecimal digits for each finding of the report, in their order. Made of the rule and the place (op,
/// phase, module, parameter, file relative to the working directory, function); not of steps, numbers or line numbers,
/// which change from run to run or with an edit elsewhere in the file. A second finding of the same rule and place gets
/// "-2".
[[nodiscard]] std::vector<std::string> fingerprints(const analyzers::Report& report);

}  // namespace ampscope::reporters
