// For a build without node: there is no page to embed.
#include "reporters/html/page.h"

namespace ampscope::reporters {

std::string_view html_page() noexcept {
  return {};
}

}  // namespace ampscope::reporters
