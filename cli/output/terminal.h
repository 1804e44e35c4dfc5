// What stdout and stderr are: a terminal or something else, how wide, in colour or not.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace ampscope::cli {

enum class Stream { out, err };

[[nodiscard]] bool is_terminal(Stream stream);

/// Columns: COLUMNS where it is set, else the terminal's, else 80; at most 120, beyond which lines are hard to read.
[[nodiscard]] int terminal_width(Stream stream);

/// NO_COLOR set: no. FORCE_COLOR or CLICOLOR_FORCE set to anything but 0: yes. Otherwise on a terminal that is not
/// dumb.
[[nodiscard]] bool use_colour(Stream stream);

/// All of `text`; false when it could not be written.
bool print(Stream stream, const std::string& text);

/// A line on stderr that says how far a long work is. It appears after half a second and only on a terminal, is redrawn
/// in place and gone at the end.
class ProgressLine {
 public:
  explicit ProgressLine(const std::string& what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::uint64_t done, std::uint64_t total);

 private:
  std::string what_;
  bool active_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace ampscope::cli
