#include "reporters/common/numbers.h"

#include <array>
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

std::string spell_bytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> units = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace ampscope::reporters
