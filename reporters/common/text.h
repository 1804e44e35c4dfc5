// Text that comes from a trace is whatever a training program called its modules, files and exceptions. Before it is
// shown it is made valid UTF-8, and for a terminal it is made harmless.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ampscope::reporters {

/// `text` with every ill-formed UTF-8 sequence replaced by U+FFFD.
[[nodiscard]] std::string valid_utf8(std::string_view text);

/// One line for a terminal: valid UTF-8; line breaks and tabs become a space; every other control character, and the
/// characters that reorder or hide text, are spelled as \x1b or \u202e, so that a name cannot command the terminal.
[[nodiscard]] std::string printable(std::string_view text);

/// Columns that `text` takes in a terminal: wide East Asian characters take two, combining marks none.
[[nodiscard]] int display_width(std::string_view text);

/// `text` cut to at most `width` columns, the last of them "…" when something was cut.
[[nodiscard]] std::string shorten(std::string_view text, int width);

/// `text` followed by as many spaces as make it `width` columns wide.
[[nodiscard]] std::string pad_right(std::string_view text, int width);

/// `text` without spaces at both ends.
[[nodiscard]] std::string_view trim(std::string_view text);

}  // namespace ampscope::reporters
