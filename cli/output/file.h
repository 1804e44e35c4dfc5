// Files that the command writes, whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace ampscope::cli {

/// Throws UserError when `path` cannot be written: it exists and `force` is not given, it is a folder, its folder does
/// not exist or takes no files.
void check_writable(const std::string& path, bool force);

/// Writes `content` to a temporary file beside `path` and renames it: a reader sees the old file or the new one. Throws
/// UserError, also when check_writable would.
void write_file(const std::string& path, std::string_view content, bool force);

/// The file's content; throws UserError when it cannot be read.
[[nodiscard]] std::string read_file(const std::string& path);

}  // namespace ampscope::cli
