// The basic root cause: for every step that went wrong, the call in which the first non-finite value that reached the
// loss, a gradient or the weights was born.
//
// What it leaves alone: values that reach nothing; infinities that are meant (rootcause/intent.h); gradients that
// overflow in fp16 because of the loss scale while the scaler is doing its work (scaler/skips.h); gradients that a
// program found and dropped itself; and everything after weights have become non-finite, which can only be a victim.
#pragma once

#include <span>
#include <vector>

#include "analyzers/rootcause/origin.h"
#include "analyzers/scaler/skips.h"

namespace ampscope::analyzers {

struct RootCause {
  std::vector<Origin> origins;  ///< by first step, then by order of occurrence
  /// Producers of values that reached neither loss nor gradients nor weights, in steps that were looked at in full.
  std::vector<const trace::NonfiniteEvent*> unreached;
};

[[nodiscard]] RootCause find_root_cause(const TraceView& view, std::span<const SkipAnalysis> scalers);

}  // namespace ampscope::analyzers
