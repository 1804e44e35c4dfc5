#include "reporters/terminal/paint.h"

namespace ampscope::reporters {

std::string Painter::operator()(Tone tone, std::string_view text) const {
  const char* code = "";
  switch (tone) {
    case Tone::plain:
      break;
    case Tone::strong:
      code = "1";
      break;
    case Tone::faint:
      code = "2";
      break;
    case Tone::error:
      code = "1;31";
      break;
    case Tone::warning:
      code = "1;33";
      break;
    case Tone::note:
      code = "1;36";
      break;
    case Tone::fix:
      code = "32";
      break;
  }
  if (!colour_ || *code == '\0' || text.empty()) return std::string(text);
  return std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace ampscope::reporters
