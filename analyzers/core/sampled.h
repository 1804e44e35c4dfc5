// What can be said of all steps from the ones that were drawn.
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "trace/model.h"

namespace ampscope::analyzers {

/// 95 % interval of the share of a parameter's gradient elements that are zero, over all steps, from windows of steps
/// that a budget has drawn. None where every step was looked at or too little is known.
[[nodiscard]] std::optional<std::pair<double, double>> zero_share_interval(
    std::span<const trace::GradientWindow* const> windows);

}  // namespace ampscope::analyzers
