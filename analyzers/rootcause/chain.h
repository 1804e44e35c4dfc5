// The way of a non-finite value from its birth to where a person sees it.
#pragma once

#include <vector>

#include "analyzers/rootcause/origin.h"

namespace ampscope::analyzers {

/// Links from the origin to the loss, the first gradient and what became of the step; what lies between is cut to few.
[[nodiscard]] std::vector<ChainLink> build_chain(const TraceView& view, const Origin& origin, std::int64_t step);

}  // namespace ampscope::analyzers
