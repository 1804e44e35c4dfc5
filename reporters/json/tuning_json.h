// Recommended settings of a loss scaler for machines: "ampscope.tune/1", described in docs/cli.md.
#pragma once

#include <string>
#include <vector>

#include "analyzers/scaler/tuning_report.h"

namespace ampscope::reporters {

[[nodiscard]] std::string render_tuning_json(const std::vector<analyzers::TuningReport>& scalers);

}  // namespace ampscope::reporters
