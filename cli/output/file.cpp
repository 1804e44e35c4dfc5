#include "cli/output/file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/app/error.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

std::string shown(const std::string& path) {
  return reporters::printable(path);
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// Removes the temporary file unless it has become the real one.
struct Temporary {
  std::string path;
  int descriptor = -1;
  ~Temporary() {
    if (descriptor >= 0) close(descriptor);
    if (!path.empty()) unlink(path.c_str());
  }
};

}  // namespace

void check_writable(const std::string& path, bool force) {
  std::error_code error;
  if (path.empty()) throw UserError("the name of the output file is empty");
  if (fs::is_directory(path, error))
    throw UserError(fmt::format("{} is a folder; give the name of a file", shown(path)));
  const fs::path folder = folder_of(path);
  if (!fs::is_directory(folder, error)) {
    throw UserError(fmt::format("there is no folder {}; make it first: mkdir -p {}", shown(folder), shown(folder)));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw UserError(fmt::format("the folder {} takes no files ({})", shown(folder), std::strerror(errno)));
  }
  if (!force && fs::exists(fs::symlink_status(path, error))) {
    throw UserError(fmt::format("{} exists; give another name, or replace it with --force", shown(path)));
  }
}

void write_file(const std::string& path, std::string_view content, bool force) {
  check_writable(path, force);
  Temporary temporary;
  std::string name = path + ".XXXXXX";
  temporary.descriptor = mkstemp(name.data());
  if (temporary.descriptor < 0) throw UserError(fmt::format("cannot write {} ({})", shown(path), std::strerror(errno)));
  temporary.path = name;
  for (std::size_t at = 0; at < content.size();) {
    const ssize_t written = write(temporary.descriptor, content.data() + at, content.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw UserError(fmt::format("cannot write {} ({})", shown(path), std::strerror(errno)));
    at += static_cast<std::size_t>(written);
  }
  // mkstemp makes files for their owner alone; a report has the mode any new file has.
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(temporary.descriptor, 0666 & ~mask);
  // Unlike a rename, a link never replaces a file that appeared meanwhile.
  const bool placed = force ? rename(name.c_str(), path.c_str()) == 0 : link(name.c_str(), path.c_str()) == 0;
  if (!placed && !force && errno != EEXIST && rename(name.c_str(), path.c_str()) == 0) {
    temporary.path.clear();  // a file system without hard links
    return;
  }
  if (!placed) throw UserError(fmt::format("cannot write {} ({})", shown(path), std::strerror(errno)));
  if (force) temporary.path.clear();
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("cannot read {} ({})", shown(path), std::strerror(errno)));
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw UserError(fmt::format("cannot read {}", shown(path)));
  return content;
}

}  // namespace ampscope::cli
