// How a training program is started so that it is observed: the environment it gets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/process/installation.h"

namespace ampscope::cli {

struct LaunchOptions {
  std::vector<std::string> command;
  std::string directory;  ///< where the user is
  std::string output;     ///< absolute pattern of the trace
  std::string run_id;
  std::string level;
  double budget_percent = 0;  ///< 0: none
  std::int64_t max_bytes = 0;
  std::string repro_folder;  ///< absolute; empty: no reproduction was asked for
  std::string status_file;   ///< where the probe leaves notices
};

/// Changes to the environment; PYTHONPATH and LD_PRELOAD keep what they had behind ours.
[[nodiscard]] std::map<std::string, std::string> launch_environment(const LaunchOptions& options,
                                                                    const Installation& installation);

/// 32 hexadecimal digits that no other run has.
[[nodiscard]] std::string new_run_id();

}  // namespace ampscope::cli
