// Files and bytes for the tests of the trace.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/reader.h"
#include "trace/trace.h"
#include "trace/writer.h"

namespace ampscope::trace::test {

/// A folder that is removed with everything in it at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  Folder(Folder&&) = delete;
  Folder& operator=(Folder&&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view bytes);

/// The header of a trace of this version.
[[nodiscard]] std::string header_bytes(int major = format_major, int minor = format_minor);
/// `content` as one zstd frame, made with zstd's simple interface and not with the writer's code.
[[nodiscard]] std::string frame_bytes(std::string_view content, bool checksum = true);

/// The trace in `bytes`; a test failure and an empty one when it is none.
[[nodiscard]] Trace must_read(const std::string& bytes);
/// The error that reading `bytes` gives; a test failure when there is none.
[[nodiscard]] ReadError must_fail(const std::string& bytes);

/// A small trace as a run would leave it, with several frames and a record of most kinds; the offsets where its frames
/// end.
struct SmallTrace {
  std::string bytes;
  std::vector<std::size_t> frame_ends;
};
[[nodiscard]] SmallTrace small_trace();

}  // namespace ampscope::trace::test
