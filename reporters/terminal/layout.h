// Lines that fit a width. Text that is passed in is printable already; colour comes afterwards.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ampscope::reporters {

/// `text` broken into lines of at most `width` columns: after a " · " where the part behind it fits a line, else at
/// spaces. A word that is wider stays whole, so that it can be copied. Never empty: no text is one empty line.
[[nodiscard]] std::vector<std::string> wrap(std::string_view text, int width);

/// The end of `text` in at most `width` columns, after "…" when something was cut: for paths, whose end says most.
[[nodiscard]] std::string shorten_left(std::string_view text, int width);

/// `left`, then as many spaces as put the end of `right` into column `width`; at least two.
[[nodiscard]] std::string spaces_between(std::string_view left, std::string_view right, int width);

}  // namespace ampscope::reporters
