// The tables of a report: what was observed, ready to be shown.
#pragma once

#include <deque>

#include "analyzers/core/report.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

/// Fills everything of the report but findings, verdict and not_evaluated. Tables are those of the first process.
void fill_tables(const std::deque<ProcessAnalysis>& processes, Report& report);

}  // namespace ampscope::analyzers
