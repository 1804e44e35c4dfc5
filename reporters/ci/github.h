// Workflow commands that GitHub Actions turns into annotations of a pull request.
#pragma once

#include <string>

#include "analyzers/core/report.h"

namespace ampscope::reporters {

/// One line a finding: ::error, ::warning or ::notice with file and line where they are known.
[[nodiscard]] std::string render_github(const analyzers::Report& report);

}  // namespace ampscope::reporters
