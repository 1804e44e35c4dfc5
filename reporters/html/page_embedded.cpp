// Takes the page in from where the build made it. g++ before 15 has no #embed; the assembler has had .incbin for ever.
#include "reporters/html/page.h"

__asm__(
    ".section .rodata\n"
    ".global ampscope_html_page_begin\n"
    ".hidden ampscope_html_page_begin\n"
    ".global ampscope_html_page_end\n"
    ".hidden ampscope_html_page_end\n"
    "ampscope_html_page_begin:\n"
    ".incbin \"" AMPSCOPE_HTML_PAGE
    "\"\n"
    "ampscope_html_page_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" {
extern const char ampscope_html_page_begin[];
extern const char ampscope_html_page_end[];
}

namespace ampscope::reporters {

std::string_view html_page() noexcept {
  return {ampscope_html_page_begin, static_cast<std::size_t>(ampscope_html_page_end - ampscope_html_page_begin)};
}

}  // namespace ampscope::reporters
