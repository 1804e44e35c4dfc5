// A file that only grows, for a process that must survive whatever happens to it: a full disk, a size limit, a signal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ampscope::trace {

class AppendFile {
 public:
  AppendFile() = default;
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  AppendFile(AppendFile&&) = delete;
  AppendFile& operator=(AppendFile&&) = delete;

  /// Each returns 0 or an errno. A new file has the mode of the process' umask; none of them follows a fork's exec.
  int create(const std::string& path) noexcept;     ///< EEXIST when there is one
  int overwrite(const std::string& path) noexcept;  ///< in the place of whatever file is there
  int open_existing(const std::string& path) noexcept;

  /// Reads the first bytes of a file opened by open_existing, as many as there are up to `size`; -errno on failure.
  std::int64_t read_front(char* bytes, std::size_t size) const noexcept;
  /// Writes all of `bytes` or nothing that lasts: what a failed write left behind is cut off where the system allows
  /// it.
  int append(std::string_view bytes) noexcept;
  int close() noexcept;
  /// Closes, and removes a regular file to which nothing could be written, so that it stands in nobody's way.
  void discard(const std::string& path) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }

 private:
  int opened(int descriptor) noexcept;

  int descriptor_ = -1;
  std::uint64_t size_ = 0;  ///< of the file after the last append that succeeded
};

}  // namespace ampscope::trace
