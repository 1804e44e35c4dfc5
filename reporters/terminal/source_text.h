// The text of a line of the user's program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace/model.h"

namespace ampscope::reporters {

/// The line without the spaces around it. Nothing where it cannot be read, or where the file was changed after
/// `recorded_ns` (Unix time): its lines are no longer those that ran. 0 skips that check.
[[nodiscard]] std::optional<std::string> read_source_text(const trace::SourceLine& source, std::int64_t recorded_ns);

}  // namespace ampscope::reporters
