// The way of a value from where it was born to where a person sees it, in at most five lines.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/finding.h"

namespace ampscope::reporters {

/// Aligned lines of at most `width` columns: op, module, source line, type, range, what happens. The links in the
/// middle are left out and counted when there are more than five.
[[nodiscard]] std::vector<std::string> chain_lines(const std::vector<analyzers::ChainLink>& chain,
                                                   const std::string& working_directory, int width);

}  // namespace ampscope::reporters
