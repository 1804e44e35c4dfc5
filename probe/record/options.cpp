#include "probe/record/options.h"

#include <climits>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include <unistd.h>

namespace ampscope::record {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::int64_t integer(const char* name, std::int64_t fallback) {
  const std::string text = variable(name);
  if (text.empty()) return fallback;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  return end && *end == '\0' ? value : fallback;
}

trace::Level level_from(const std::string& name) {
  if (name == "ops") return trace::Level::ops;
  if (name == "grads") return trace::Level::grads;
  if (name == "full") return trace::Level::full;
  if (name == "shadow") return trace::Level::shadow;
  return trace::Level::automatic;
}

std::vector<std::string> own_command_line() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string word;
  while (std::getline(file, word, '\0'))
    words.push_back(word);
  return words;
}

}  // namespace

Options options_from_environment() {
  Options options;
  options.output = variable("AMPSCOPE_OUTPUT");
  options.run_id = variable("AMPSCOPE_RUN_ID");
  options.status_file = variable("AMPSCOPE_STATUS_FILE");
  options.repro_folder = variable("AMPSCOPE_REPRO");
  options.level = level_from(variable("AMPSCOPE_LEVEL"));
  options.budget_percent = std::strtod(variable("AMPSCOPE_BUDGET").c_str(), nullptr);
  options.max_bytes = integer("AMPSCOPE_MAX_SIZE", default_max_bytes);
  options.ring_bytes = integer("AMPSCOPE_RING_BYTES", default_ring_bytes);
  options.rank = integer("RANK", trace::none);
  options.local_rank = integer("LOCAL_RANK", trace::none);
  options.world_size = integer("WORLD_SIZE", trace::none);
  options.start_directory = variable("AMPSCOPE_CWD");
  if (options.start_directory.empty()) {
    char buffer[PATH_MAX];
    if (getcwd(buffer, sizeof buffer)) options.start_directory = buffer;
  }
  // Not the no-throw parse alone: a value that is JSON but no array of strings is no command either.
  const auto command = nlohmann::json::parse(variable("AMPSCOPE_COMMAND"), nullptr, false);
  if (command.is_array()) {
    for (const auto& word : command) {
      if (word.is_string()) options.command.push_back(word.get<std::string>());
    }
  }
  if (options.command.empty()) options.command = own_command_line();
  if (options.output.empty()) options.output = options.start_directory + "/run.ampscope";
  return options;
}

}  // namespace ampscope::record
