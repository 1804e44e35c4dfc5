#include "analyzers/core/numbers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace ampscope::analyzers {

namespace {

/// Digits in groups of three from the right.
std::string grouped(const std::string& digits) {
  const std::size_t start = digits.starts_with('-') ? 1 : 0;
  // Four digits read well without a gap.
  if (digits.size() - start <= 4) return digits;
  std::string result;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > start && (digits.size() - i) % 3 == 0) result += ' ';
    result += digits[i];
  }
  return result;
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  if (magnitude >= 999.5 && magnitude < 1e9) return grouped(fmt::format("{:.0f}", value));
  if (magnitude >= 1e9 || magnitude < 1e-7) return fmt::format("{:.3g}", value);
  const int exponent = static_cast<int>(std::floor(std::log10(magnitude)));
  return without_trailing_zeros(fmt::format("{:.{}f}", value, std::max(0, 2 - exponent)));
}

std::string count_of(std::int64_t value) {
  return grouped(fmt::format("{}", value));
}

std::string scale(double value) {
  int exponent = 0;
  const double significand = std::frexp(value, &exponent);
  const int power = exponent - 1;
  if (std::isfinite(value) && significand == 0.5 && std::abs(power) > 4) return fmt::format("2^{}", power);
  return number(value);
}

std::string share(double value) {
  const double percent = value * 100;
  if (!std::isfinite(percent)) return number(percent);
  if (percent <= 0) return "0 %";
  if (percent < 0.01) return "< 0.01 %";
  if (percent >= 100) return "100 %";
  // Rounding must not make all of nearly all.
  if (percent > 99.9) return "> 99.9 %";
  return fmt::format("{} %", without_trailing_zeros(fmt::format("{:.{}f}", percent, percent < 0.1 ? 2 : 1)));
}

std::string plural(std::int64_t value, const char* noun) {
  return fmt::format("{} {}{}", count_of(value), noun, value == 1 ? "" : "s");
}

std::string step_range(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("step {}", count_of(first))
                       : fmt::format("steps {}–{}", count_of(first), count_of(last));
}

}  // namespace ampscope::analyzers
