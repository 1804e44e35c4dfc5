// One finding as lines: the sentence, the place, the proof, the fix.
#pragma once

#include <string>

#include "analyzers/core/report.h"
#include "reporters/terminal/paint.h"
#include "reporters/terminal/terminal_report.h"

namespace ampscope::reporters {

/// In full. `options.width` is at least 40 and `options.read_source` is set.
[[nodiscard]] std::string finding_block(const analyzers::Finding& finding, const analyzers::RunSummary& run,
                                        const TerminalOptions& options, const Painter& paint);

/// The sentence alone.
[[nodiscard]] std::string finding_line(const analyzers::Finding& finding, const TerminalOptions& options,
                                       const Painter& paint);

}  // namespace ampscope::reporters
