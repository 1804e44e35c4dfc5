#include "reporters/terminal/source_text.h"

#include <fstream>

#include <sys/stat.h>

#include "reporters/common/text.h"

namespace ampscope::reporters {

std::optional<std::string> read_source_text(const trace::SourceLine& source, std::int64_t recorded_ns) {
  if (!source.known() || source.line < 1) return std::nullopt;
  struct stat status{};
  // Only regular files of a size that people write: the path comes from a trace, and opening a pipe would wait for
  // ever.
  constexpr off_t largest = 16 << 20;
  if (stat(source.file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > largest) {
    return std::nullopt;
  }
  constexpr std::int64_t second = 1'000'000'000;
  if (recorded_ns > 0 && status.st_mtim.tv_sec > recorded_ns / second) return std::nullopt;

  std::ifstream file(source.file);
  std::string line;
  for (int number = 0; number < source.line; ++number) {
    if (!std::getline(file, line)) return std::nullopt;
  }
  std::string text = printable(trim(line));
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace ampscope::reporters
