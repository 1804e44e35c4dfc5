#include "reporters/terminal/layout.h"

#include <algorithm>
#include <cstddef>

#include "reporters/common/text.h"

namespace ampscope::reporters {

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t first = text.find_first_not_of(' ', at);
    if (first == std::string_view::npos) break;
    const std::size_t end = std::min(text.find(' ', first), text.size());
    const std::string_view word = text.substr(first, end - first);
    if (word == "·" && !words.empty()) {
      words.back() += " ·";
    } else {
      words.emplace_back(word);
    }
    at = end;
  }

  std::vector<std::string> lines;
  for (const std::string& word : words) {
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
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
