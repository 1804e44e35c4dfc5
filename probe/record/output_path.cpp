#include "probe/record/output_path.h"

#include <array>

#include <unistd.h>

namespace ampscope::record {

std::string expand_placeholders(const std::string& pattern, std::int64_t rank) {
  std::string result;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      result += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'p':
        result += std::to_string(getpid());
        break;
      case 'r':
        result += std::to_string(rank < 0 ? 0 : rank);
        break;
      case 'h': {
        std::array<char, 256> host{};
        if (gethostname(host.data(), host.size() - 1) == 0) result += host.data();
        break;
      }
      case '%':
        result += '%';
        break;
      default:
        result += '%';
        result += pattern[i];
    }
  }
  return result;
}

std::string with_word(const std::string& path, const std::string& word) {
  const std::size_t slash = path.find_last_of('/');
  const std::size_t dot = path.find_last_of('.');
  const bool has_extension = dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  if (!has_extension) return path + "." + word;
  return path.substr(0, dot) + "." + word + path.substr(dot);
}

std::string preferred_path(const Options& options) {
  std::string path = expand_placeholders(options.output, options.rank);
  const bool names_rank = options.output.find("%r") != std::string::npos;
  if (options.rank > 0 && !names_rank) return with_word(path, "rank" + std::to_string(options.rank));
  return path;
}

std::string fallback_path(const Options& options) {
  return with_word(preferred_path(options), std::to_string(getpid()));
}

}  // namespace ampscope::record
