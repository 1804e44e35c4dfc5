#include "reporters/common/numbers.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ampscope::reporters {

std::string spell_count(std::int64_t count) {
  std::string digits = fmt::format("{}", count);
  const std::size_t first = count < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ' ');
  }
  return digits;
}

std::string spell_quantity(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0) return "0";
  const double magnitude = std::abs(value);
  if (magnitude >= 1e6 || magnitude < 1e-4) {
    // "1.53e-05" without the zeros that nobody needs.
    const std::string text = fmt::format("{:.2e}", value);
    const std::size_t e = text.find('e');
    return fmt::format("{}e{}", text.substr(0, e), std::stoi(text.substr(e + 1)));
  }
  if (magnitude >= 1000) {
    const double unit = std::pow(10, std::floor(std::log10(magnitude)) - 2);
    return spell_count(static_cast<std::int64_t>(std::round(value / unit) * unit));
  }
  return fmt::format("{:.3g}", value);
}

std::string spell_scale(double scale) {
  int exponent = 0;
  const bool power_of_two = std::isfinite(scale) && scale > 0 && std::frexp(scale, &exponent) == 0.5;
  if (!power_of_two) return spell_quantity(scale);
  if (scale >= 1 && scale <= 65536) return fmt::format("{:.0f}", scale);
  return fmt::format("2^{}", exponent - 1);
}

std::string spell_share(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent > 99.9 && percent < 100) return "> 99.9 %";
  return percent < 10 ? fmt::format("{:.2g} %", percent) : fmt::format("{:.0f} %", percent);
}

std::string spell_number_of(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", spell_count(count), noun, count == 1 ? "" : "s");
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
