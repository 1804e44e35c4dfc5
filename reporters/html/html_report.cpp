#include "reporters/html/html_report.h"

#include <cstddef>

#include "reporters/html/page.h"
#include "reporters/json/json_report.h"

namespace ampscope::reporters {

namespace {

constexpr std::string_view mark = ">AMPSCOPE_REPORT<";  // as the whole content of an element; no script can hold this

}  // namespace

bool has_html_page() noexcept {
  return !html_page().empty();
}

std::string json_for_script(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  std::size_t copied = 0;
  const auto replace = [&](std::size_t at, std::size_t length, std::string_view escape) {
    out.append(json, copied, at - copied).append(escape);
    copied = at + length;
  };
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      replace(i, 1, "\\u003c");
    } else if (json[i] == '\xe2' && json.compare(i, 3, "\xe2\x80\xa8") == 0) {
      replace(i, 3, "\\u2028");
    } else if (json[i] == '\xe2' && json.compare(i, 3, "\xe2\x80\xa9") == 0) {
      replace(i, 3, "\\u2029");
    }
  }
  out.append(json, copied, json.size() - copied);
  return out;
}

std::variant<std::string, HtmlError> render_html(const analyzers::Report& report) {
  const std::string_view page = html_page();
  const std::size_t place = page.find(mark);
  if (place == std::string_view::npos) {
    return HtmlError{
        "this ampscope was built without the page of the HTML report. Build it again with node 20.19 or newer on the "
        "PATH and -DAMPSCOPE_BUILD_VIEWER=ON, or use --format terminal or json."};
  }
  const std::string json = json_for_script(to_json(report).dump());
  std::string out;
  out.reserve(page.size() + json.size());
  out.append(page, 0, place + 1).append(json).append(page, place + mark.size() - 1);
  return out;
}

}  // namespace ampscope::reporters
