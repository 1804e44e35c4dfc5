#include "reporters/terminal/layout.h"

#include <algorithm>
#include <cstddef>

#include "reporters/common/text.h"

namespace ampscope::reporters {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = text.find_first_not_of(' '); at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(' ', end);
  }
  return words;
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& piece) {
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(piece) <= width) {
      lines.back() += " " + piece;
    } else {
      lines.push_back(piece);
    }
  };

  constexpr std::string_view separator = " · ";
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t found = text.find(separator, at);
    const std::size_t end = std::min(found, text.size());
    std::vector<std::string> words = split(text.substr(at, end - at));
    if (found != std::string_view::npos && !words.empty()) words.back() += " ·";
    const std::string part = join(words);
    // A part between two dots stays together where a line can hold it.
    if (display_width(part) <= width) {
      if (!part.empty()) add(part);
    } else {
      for (const std::string& word : words)
        add(word);
    }
    at = found == std::string_view::npos ? text.size() + 1 : found + separator.size();
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string shorten_left(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= 0) return {};
  std::size_t at = 0;
  while (at < text.size() && display_width(text.substr(at)) > width - 1) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U)
      ++at;
  }
  return "…" + std::string(text.substr(at));
}

std::string spaces_between(std::string_view left, std::string_view right, int width) {
  const int missing = width - display_width(left) - display_width(right);
  return std::string(static_cast<std::size_t>(std::max(missing, 2)), ' ');
}

}  // namespace ampscope::reporters
