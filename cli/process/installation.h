// What lies beside the command: the parts that are loaded into the training program.
#pragma once

#include <string>
#include <vector>

namespace ampscope::cli {

struct Installation {
  std::string lib_dir;                ///< absolute; whether it exists or not
  std::string preload_stub;           ///< libampscope_preload.so, "" when it is not there or cannot be named
  std::string bootstrap;              ///< folder for PYTHONPATH, "" when it is not there or cannot be named
  std::string unnameable;             ///< why LD_PRELOAD or PYTHONPATH cannot name the folder, "" when they can
  std::vector<std::string> adapters;  ///< torch versions there is an adapter for, in order: "2.13"
  [[nodiscard]] bool can_observe() const { return !preload_stub.empty() || !bootstrap.empty(); }
};

/// Looks into `lib_dir`, or, when it is "", into ../lib/ampscope beside the running command.
[[nodiscard]] Installation find_installation(const std::string& lib_dir);

}  // namespace ampscope::cli
