#include "cli/process/launch.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include <fmt/format.h>

#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

/// `first` in front of the entries that `variable` has, once. An empty entry would mean the current folder to Python,
/// so none is made.
std::string prepended(const char* variable, const std::string& first) {
  const char* const value = std::getenv(variable);
  std::string result = first;
  std::string_view rest = value == nullptr ? "" : value;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string_view entry = rest.substr(0, colon);
    if (entry != first) result += ":" + std::string(entry);
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return result;
}

}  // namespace

std::map<std::string, std::string> launch_environment(const LaunchOptions& options, const Installation& installation) {
  nlohmann::json command = nlohmann::json::array();
  for (const std::string& word : options.command)
    command.push_back(reporters::valid_utf8(word));
  std::map<std::string, std::string> environment = {
      {"AMPSCOPE_OUTPUT", options.output},
      {"AMPSCOPE_RUN_ID", options.run_id},
      {"AMPSCOPE_LEVEL", options.level},
      {"AMPSCOPE_BUDGET", options.budget_percent > 0 ? fmt::format("{}", options.budget_percent) : ""},
      {"AMPSCOPE_MAX_SIZE", fmt::format("{}", options.max_bytes)},
      {"AMPSCOPE_COMMAND", command.dump()},
      {"AMPSCOPE_CWD", options.directory},
      {"AMPSCOPE_STATUS_FILE", options.status_file},
      {"AMPSCOPE_REPRO", options.repro_folder},
      {"AMPSCOPE_LIB_DIR", installation.lib_dir},
  };
  if (!installation.bootstrap.empty()) environment["PYTHONPATH"] = prepended("PYTHONPATH", installation.bootstrap);
  if (!installation.preload_stub.empty())
    environment["LD_PRELOAD"] = prepended("LD_PRELOAD", installation.preload_stub);
  return environment;
}

std::string new_run_id() {
  std::random_device device;  // getrandom(2) or RDRAND with libstdc++
  std::string id;
  for (int i = 0; i < 4; ++i)
    id += fmt::format("{:08x}", device());
  return id;
}

}  // namespace ampscope::cli
