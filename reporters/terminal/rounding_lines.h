// The terminal's part of a run at the level shadow: which ops lost most to rounding.
#pragma once

#include <string>

#include "analyzers/core/report.h"
#include "reporters/terminal/paint.h"

namespace ampscope::reporters {

/// The compared ops with the largest relative error, worst first, five unless `all`. Empty
/// when none was compared.
[[nodiscard]] std::string rounding_lines(const analyzers::Report& report, bool all, int width, const Painter& paint);

}  // namespace ampscope::reporters
