// The report for machines: contract "ampscope.report/1", described by docs/report.schema.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "analyzers/core/report.h"

namespace ampscope::reporters {

/// The whole report. Every string is valid UTF-8; a NaN or an infinity is the string "NaN", "Infinity" or "-Infinity".
[[nodiscard]] nlohmann::ordered_json to_json(const analyzers::Report& report);

/// The same as text: one line for each property, finding, op, parameter and so on.
[[nodiscard]] std::string render_json(const analyzers::Report& report);

}  // namespace ampscope::reporters
