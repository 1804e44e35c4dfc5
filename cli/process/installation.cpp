#include "cli/process/installation.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

std::pair<int, int> numbers(const std::string& version) {
  const std::size_t dot = version.find('.');
  return {std::stoi(version.substr(0, dot)), std::stoi(version.substr(dot + 1))};
}

/// "2.13" of libampscope_probe_torch2.13.so, "" of any other file.
std::string adapter_version(const std::string& file) {
  constexpr std::string_view prefix = "libampscope_probe_torch";
  constexpr std::string_view suffix = ".so";
  if (!file.starts_with(prefix) || !file.ends_with(suffix) || file.size() <= prefix.size() + suffix.size()) return {};
  const std::string version = file.substr(prefix.size(), file.size() - prefix.size() - suffix.size());
  const std::size_t dot = version.find('.');
  const bool two_numbers = dot != std::string::npos && dot > 0 && dot <= 3 && version.size() - dot - 1 >= 1 &&
                           version.size() - dot - 1 <= 3 &&
                           version.find_first_not_of("0123456789.") == std::string::npos &&
                           version.find('.', dot + 1) == std::string::npos;
  return two_numbers ? version : "";
}

std::string beside_command() {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  return (command.parent_path().parent_path() / "lib" / "ampscope").string();
}

}  // namespace

Installation find_installation(const std::string& lib_dir) {
  Installation found;
  std::error_code error;
  found.lib_dir = lib_dir.empty() ? beside_command() : fs::absolute(lib_dir, error).lexically_normal().string();
  const fs::path folder = found.lib_dir;
  // The entries of both lists stand between colons, those of LD_PRELOAD between spaces too, and neither knows an
  // escape.
  const bool colon = found.lib_dir.find(':') != std::string::npos;
  const bool space = found.lib_dir.find(' ') != std::string::npos;
  if (colon || space) {
    found.unnameable = std::string(colon ? "PYTHONPATH and LD_PRELOAD" : "LD_PRELOAD") +
                       " cannot name a folder with a " + (colon ? "colon" : "space") +
                       " in its name; install ampscope into another one";
  }
  if (!colon && !space && fs::is_regular_file(folder / "libampscope_preload.so", error)) {
    found.preload_stub = (folder / "libampscope_preload.so").string();
  }
  if (!colon && fs::is_regular_file(folder / "python" / "bootstrap" / "sitecustomize.py", error)) {
    found.bootstrap = (folder / "python" / "bootstrap").string();
  }
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (std::string version = adapter_version(entry->path().filename().string()); !version.empty()) {
      found.adapters.push_back(std::move(version));
    }
  }
  std::sort(found.adapters.begin(), found.adapters.end(),
            [](const std::string& a, const std::string& b) { return numbers(a) < numbers(b); });
  return found;
}

}  // namespace ampscope::cli
