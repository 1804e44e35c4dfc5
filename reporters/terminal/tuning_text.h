// Recommended settings of a loss scaler as people read them.
#pragma once

#include <string>
#include <vector>

#include "analyzers/scaler/tuning_report.h"

namespace ampscope::reporters {

[[nodiscard]] std::string render_tuning(const std::vector<analyzers::TuningReport>& scalers, int width, bool colour);

}  // namespace ampscope::reporters
