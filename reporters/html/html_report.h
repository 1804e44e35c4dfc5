// The report as one HTML file that works offline: the page of viewer/ with the JSON report inside it.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "analyzers/core/report.h"

namespace ampscope::reporters {

struct HtmlError {
  std::string message;  ///< one or two sentences: why there is no page and what to do
};

/// Whether this build holds the page; without it `render_html` only returns its error.
[[nodiscard]] bool has_html_page() noexcept;

/// The whole file. The page loads nothing: its content security policy forbids every request.
[[nodiscard]] std::variant<std::string, HtmlError> render_html(const analyzers::Report& report);

/// JSON text as it may stand inside a <script> element: nothing in it can end the element, open a comment, or be taken
/// for a line break by a parser of JavaScript. It stays the same JSON value.
[[nodiscard]] std::string json_for_script(std::string_view json);

}  // namespace ampscope::reporters
