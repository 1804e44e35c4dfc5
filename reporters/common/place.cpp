#include "reporters/common/place.h"

#include <filesystem>

namespace ampscope::reporters {

std::string relative_path(std::string_view file, std::string_view directory) {
  if (directory.empty()) return std::string(file);
  // Lexically only: the report may be read on another machine, and a trace must not make us touch the file system.
  const auto path = std::filesystem::path(file).lexically_normal();
  const auto base = std::filesystem::path(directory).lexically_normal();
  if (!path.is_absolute() || !base.is_absolute()) return std::string(file);
  std::string relative = path.lexically_relative(base).string();
  if (relative.empty() || relative == "." || relative == ".." || relative.starts_with("../")) return std::string(file);
  return relative;
}

std::string place(const trace::SourceLine& source, std::string_view working_directory) {
  if (!source.known()) return {};
  return relative_path(source.file, working_directory) + ":" + std::to_string(source.line);
}

}  // namespace ampscope::reporters
