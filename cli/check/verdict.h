// When a check fails.
#pragma once

#include <string_view>

#include "analyzers/core/report.h"

namespace ampscope::cli {

/// "warning" or "error"; throws UserError for anything else.
[[nodiscard]] analyzers::Severity parse_fail_on(std::string_view text, std::string_view where);

/// Whether the report has a finding of at least this severity.
[[nodiscard]] bool fails(const analyzers::Report& report, analyzers::Severity threshold);

}  // namespace ampscope::cli
