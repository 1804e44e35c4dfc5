// Findings that are known and accepted, in a file that is kept beside the code.
#pragma once

#include <cstdint>
#include <string>

#include "analyzers/core/report.h"

namespace ampscope::cli {

/// The findings of the report as a baseline: JSON, "ampscope.baseline/1", one entry a finding with its fingerprint and,
/// for people, its rule, place and title.
[[nodiscard]] std::string make_baseline(const analyzers::Report& report);

struct BaselineResult {
  std::int64_t known = 0;  ///< findings that were taken out of the report
  std::int64_t gone = 0;   ///< entries of the baseline that no finding has any more
};

/// Takes the findings that `baseline` (the file's text; `path` is its name for messages) knows out of the report.
/// Throws UserError when it is no baseline.
BaselineResult apply_baseline(const std::string& baseline, const std::string& path, analyzers::Report& report);

}  // namespace ampscope::cli
