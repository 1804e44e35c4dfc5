// Colour for a terminal. What a colour says always stands there as a word too.
#pragma once

#include <string>
#include <string_view>

namespace ampscope::reporters {

enum class Tone { plain, strong, faint, error, warning, note, fix };

class Painter {
 public:
  explicit Painter(bool colour) : colour_(colour) {}
  /// `text` in the escape sequences of its tone, or as it is without colour.
  [[nodiscard]] std::string operator()(Tone tone, std::string_view text) const;

 private:
  bool colour_;
};

}  // namespace ampscope::reporters
