#include "reporters/common/numbers.h"

#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"

namespace ampscope::reporters {

std::string spell_scale(double scale) {
  int exponent = 0;
  const bool power_of_two = std::isfinite(scale) && scale > 0 && std::frexp(scale, &exponent) == 0.5;
  if (!power_of_two) return analyzers::number(scale);
  if (scale >= 1 && scale <= 65536) return fmt::format("{:.0f}", scale);
  return fmt::format("2^{}", exponent - 1);
}

}  // namespace ampscope::reporters
