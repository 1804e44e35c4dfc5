// The file through which what runs in the training program tells `ampscope run` why it does not watch.
#pragma once

#include <string>
#include <vector>

namespace ampscope::cli {

/// An empty file in the folder for temporary files, removed at the end.
class StatusFile {
 public:
  StatusFile();
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  /// "" when it could not be made; the notices are on stderr all the same.
  [[nodiscard]] const std::string& path() const { return path_; }

  /// The messages in it, each once, in order. Lines that are no notice are passed over.
  [[nodiscard]] std::vector<std::string> messages() const;

 private:
  std::string path_;
};

}  // namespace ampscope::cli
