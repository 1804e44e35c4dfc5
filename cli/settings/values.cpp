#include "cli/settings/values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/app/error.h"
#include "cli/app/suggest.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

[[noreturn]] void refuse(std::string_view where, std::string_view text, std::string_view what) {
  throw UserError(fmt::format("{}: '{}' is not {}", where, reporters::printable(text), what));
}

/// The number that `text` starts with; what follows it stays in `text`.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  text = reporters::trim(text);
  return value;
}

}  // namespace

const std::vector<std::string>& level_names() {
  static const std::vector<std::string> names = {"ops", "grads", "auto", "full", "shadow"};
  return names;
}

const std::vector<std::string>& severity_names() {
  static const std::vector<std::string> names = {"info", "warning", "error"};
  return names;
}

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = {"terminal", "json", "html", "sarif", "junit", "github"};
  return names;
}

std::string parse_choice(std::string_view text, const std::vector<std::string>& names, std::string_view what,
                         std::string_view where) {
  if (std::find(names.begin(), names.end(), text) != names.end()) return std::string(text);
  throw UserError(fmt::format("{}: '{}' is not a {} ({}){}", where, reporters::printable(text), what,
                              fmt::join(names, ", "), did_you_mean(text, names)));
}

analyzers::Severity parse_severity(std::string_view text, std::string_view where) {
  const std::string name = parse_choice(text, severity_names(), "severity", where);
  if (name == "error") return analyzers::Severity::error;
  return name == "warning" ? analyzers::Severity::warning : analyzers::Severity::info;
}

double parse_percent(std::string_view text, std::string_view where) {
  std::string_view rest = reporters::trim(text);
  const std::optional<double> value = take_number(rest);
  if (!value || (!rest.empty() && rest != "%") || *value <= 0 || *value > 100) {
    refuse(where, text, "a percentage above 0 and up to 100, such as 2%");
  }
  return *value;
}

std::int64_t parse_size(std::string_view text, std::string_view where) {
  constexpr const char* example = "a size of at least 64KiB, such as 512MiB or 2G";
  std::string_view rest = reporters::trim(text);
  const std::optional<double> value = take_number(rest);
  if (!value) refuse(where, text, example);

  double factor = 1;
  if (const std::string unit = lower(rest); !unit.empty() && unit != "b") {
    constexpr std::string_view letters = "kmgt";
    const std::size_t power = letters.find(unit.front());
    const std::string_view ending = std::string_view(unit).substr(1);
    if (power == std::string_view::npos || (!ending.empty() && ending != "b" && ending != "ib"))
      refuse(where, text, example);
    factor = std::pow(ending == "b" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
  }
  const double bytes = *value * factor;
  if (bytes < 65536 || bytes > 9e18) refuse(where, text, example);
  return static_cast<std::int64_t>(bytes);
}

bool parse_switch(std::string_view text, std::string_view where) {
  const std::string word = lower(text);
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (word == yes) return true;
  }
  for (const char* no : {"", "0", "false", "no", "off"}) {
    if (word == no) return false;
  }
  refuse(where, text, "true or false");
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = reporters::trim(text.substr(0, comma));
    if (!word.empty()) words.emplace_back(word);
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace ampscope::cli
