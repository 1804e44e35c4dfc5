// Traces written by hand, as JSON that maps to the records of trace/model.h; docs/adding-a-rule.md describes the
// format.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzers/core/engine.h"
#include "trace/trace.h"

namespace ampscope::analyzers::testing {

struct Fixture {
  std::vector<trace::Trace> traces;
  AnalysisOptions options;
  nlohmann::json expect;
};

/// Builds a trace from its JSON. Throws std::runtime_error with the offending text when it does not understand
/// something.
[[nodiscard]] trace::Trace trace_from_json(const nlohmann::json& json);

/// Reads a fixture: a .json file, or a recorded .ampscope file with its expectation beside it (name.expect.json).
[[nodiscard]] Fixture load_fixture(const std::filesystem::path& path);

/// Values of a stats object, also used by tests that build records themselves.
[[nodiscard]] trace::TensorStats stats_from_json(const nlohmann::json& json);

}  // namespace ampscope::analyzers::testing
