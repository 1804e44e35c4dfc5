#include "cli/process/status_file.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include <unistd.h>

namespace ampscope::cli {

StatusFile::StatusFile() {
  const char* const folder = std::getenv("TMPDIR");
  std::string name = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/ampscope-status.XXXXXX";
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) return;
  close(descriptor);
  path_ = name;
}

StatusFile::~StatusFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

std::vector<std::string> StatusFile::messages() const {
  std::vector<std::string> messages;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const auto notice = nlohmann::json::parse(line, nullptr, false);
    if (!notice.is_object() || !notice.contains("message") || !notice["message"].is_string()) continue;
    const auto message = notice["message"].get<std::string>();
    if (std::find(messages.begin(), messages.end(), message) == messages.end()) messages.push_back(message);
  }
  return messages;
}

}  // namespace ampscope::cli
