#include "reporters/common/text.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace ampscope::reporters {
namespace {

constexpr char32_t replacement = 0xFFFD;

struct CodePoint {
  char32_t value = replacement;
  std::size_t length = 1;  ///< bytes taken; of an ill-formed sequence the part that belongs together
  bool valid = false;
};

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0U) == 0x80U;
}

/// The code point that starts at `at`. The limits of the second byte rule out overlong forms, surrogates and values
/// beyond U+10FFFF (Unicode Standard, table 3-7).
CodePoint decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t offset) { return static_cast<unsigned char>(text[at + offset]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};

  std::size_t length = 0;
  char32_t value = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1FU;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0FU;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07U;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {};
  }
  for (std::size_t i = 1; i < length; ++i) {
    const bool fits = at + i < text.size() && (i == 1 ? byte(i) >= low && byte(i) <= high : is_continuation(byte(i)));
    if (!fits) return {replacement, i, false};
    value = (value << 6U) | (byte(i) & 0x3FU);
  }
  return {value, length, true};
}

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t size>
bool contains(const std::array<Range, size>& ranges, char32_t value) {
  const auto* const after = std::upper_bound(ranges.begin(), ranges.end(), value,
                                             [](char32_t v, const Range& range) { return v < range.first; });
  return after != ranges.begin() && value <= std::prev(after)->last;
}

// Marks that take no column of their own: the combining blocks, joiners and variation selectors.
constexpr std::array<Range, 17> zero_width = {{{0x0300, 0x036F},
                                               {0x0483, 0x0489},
                                               {0x0591, 0x05BD},
                                               {0x0610, 0x061A},
                                               {0x064B, 0x065F},
                                               {0x06D6, 0x06DC},
                                               {0x0900, 0x0902},
                                               {0x0E31, 0x0E31},
                                               {0x0E34, 0x0E3A},
                                               {0x1AB0, 0x1AFF},
                                               {0x1DC0, 0x1DFF},
                                               {0x200B, 0x200D},
                                               {0x20D0, 0x20FF},
                                               {0x302A, 0x302D},
                                               {0xFE00, 0xFE0F},
                                               {0xFE20, 0xFE2F},
                                               {0xE0100, 0xE01EF}}};

// The ranges that std::format counts as two columns (C++20, [format.string.std]/11).
constexpr std::array<Range, 15> double_width = {{{0x1100, 0x115F},
                                                 {0x2329, 0x232A},
                                                 {0x2E80, 0x303E},
                                                 {0x3040, 0xA4CF},
                                                 {0xAC00, 0xD7A3},
                                                 {0xF900, 0xFAFF},
                                                 {0xFE10, 0xFE19},
                                                 {0xFE30, 0xFE6F},
                                                 {0xFF00, 0xFF60},
                                                 {0xFFE0, 0xFFE6},
                                                 {0x1F300, 0x1F64F},
                                                 {0x1F680, 0x1F6FF},
                                                 {0x1F900, 0x1F9FF},
                                                 {0x20000, 0x2FFFD},
                                                 {0x30000, 0x3FFFD}}};

// Characters that reorder, join or hide what stands beside them (directional marks, embeddings, isolates, tags).
constexpr std::array<Range, 9> deceptive = {{{0x00AD, 0x00AD},
                                             {0x061C, 0x061C},
                                             {0x200B, 0x200B},
                                             {0x200E, 0x200F},
                                             {0x2028, 0x202E},
                                             {0x2060, 0x2064},
                                             {0x2066, 0x206F},
                                             {0xFEFF, 0xFEFF},
                                             {0xE0000, 0xE007F}}};

int columns(char32_t value) {
  if (contains(zero_width, value)) return 0;
  return contains(double_width, value) ? 2 : 1;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    if (point.valid) {
      out.append(text.substr(at, point.length));
    } else {
      out += "\xEF\xBF\xBD";
    }
    at += point.length;
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    const char32_t value = point.value;
    if (!point.valid) {
      out += "\xEF\xBF\xBD";
    } else if (value == '\n' || value == '\r' || value == '\t') {
      out += ' ';
    } else if (value < 0x20 || (value >= 0x7F && value <= 0x9F)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(value));
    } else if (contains(deceptive, value)) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(value));
    } else {
      out.append(text.substr(at, point.length));
    }
    at += point.length;
  }
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    width += columns(point.value);
    at += point.length;
  }
  return width;
}

std::string shorten(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= 0) return {};
  int used = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode(text, at);
    if (used + columns(point.value) > width - 1) break;
    used += columns(point.value);
    at += point.length;
  }
  return std::string(text.substr(0, at)) + "…";
}

std::string pad_right(std::string_view text, int width) {
  const int missing = width - display_width(text);
  return std::string(text) + std::string(static_cast<std::size_t>(std::max(missing, 0)), ' ');
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\f\v");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n\f\v") - first + 1);
}

}  // namespace ampscope::reporters
