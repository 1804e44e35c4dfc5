// Which non-finite values a program made on purpose. Masks are filled with -inf, a running maximum starts at -inf,
// memory that nobody has written yet holds anything: none of that is the birth of a fault, and neither is passing it
// on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

enum class Intent : std::uint8_t {
  intended,  ///< made or carries only infinities that are meant, or memory not yet written
  born,      ///< NaN made out of infinities that were meant
  fault,     ///< anything else
};

/// The intent of each event of one step, parallel to `events`, which are in order.
[[nodiscard]] std::vector<Intent> judge_intent(const TraceView& view,
                                               std::span<const trace::NonfiniteEvent* const> events);

}  // namespace ampscope::analyzers
