// Figures that only reports spell. Those that findings carry too are spelled by analyzers/core/numbers.h.
#pragma once

#include <string>

namespace ampscope::reporters {

/// A loss scale: "65536" as people know it, powers of two beyond it and below 1 as "2^17" and "2^-3".
[[nodiscard]] std::string spell_scale(double scale);

}  // namespace ampscope::reporters
