// Takes the page in from where the build made it. g++ before 15 has no #embed; the assembler has had .incbin for ever.
#include <cstdint>

#include "reporters/html/page.h"

__asm__(
    ".section .rodata\n"
    ".global ampscope_html_page\n"
    ".hidden ampscope_html_page\n"
    ".global ampscope_html_page_size\n"
    ".hidden ampscope_html_page_size\n"
    "ampscope_html_page:\n"
    ".incbin \"" AMPSCOPE_HTML_PAGE
    "\"\n"
    "1:\n"
    ".balign 8\n"
    "ampscope_html_page_size:\n"
    ".quad 1b - ampscope_html_page\n"
    ".previous\n");

extern "C" {
extern const char ampscope_html_page[];
extern const std::uint64_t ampscope_html_page_size;
}

namespace ampscope::reporters {

std::string_view html_page() noexcept {
  return {ampscope_html_page, ampscope_html_page_size};
}

}  // namespace ampscope::reporters
