// The page that viewer/ is built to, as it is embedded in the library.
#pragma once

#include <string_view>

namespace ampscope::reporters {

/// One HTML file with the mark AMPSCOPE_REPORT where the report's JSON goes; empty when it was not built.
[[nodiscard]] std::string_view html_page() noexcept;

}  // namespace ampscope::reporters
