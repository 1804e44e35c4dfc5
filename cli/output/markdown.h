// The pages of rules, which are Markdown, as text for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace ampscope::cli {

/// Headings, paragraphs, lists, quotes, tables, code blocks, `code`, *emphasis* and links: what the pages use.
/// Paragraphs and list items are filled to `width` columns; code and tables stay as they are, indented.
[[nodiscard]] std::string render_markdown(std::string_view text, int width, bool colour);

}  // namespace ampscope::cli
