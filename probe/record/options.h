// What the probe was asked to do, from the environment that `ampscope run` (or the user) set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/model.h"

namespace ampscope::record {

struct Options {
  std::string output;  ///< trace path with the placeholders %p, %r, %h still in it
  std::string run_id;
  std::string status_file;   ///< where notices for `ampscope run` go, one JSON object a line; may be empty
  std::string repro_folder;  ///< where calls that made a non-finite value are kept whole; empty: nowhere
  std::string start_directory;
  std::vector<std::string> command;
  trace::Level level = trace::Level::automatic;
  double budget_percent = 0;
  std::int64_t max_bytes = 0;
  std::int64_t ring_bytes = 0;  ///< AMPSCOPE_RING_BYTES: of the queue between a training thread and the writer
  std::int64_t rank = trace::none;
  std::int64_t local_rank = trace::none;
  std::int64_t world_size = trace::none;
};

inline constexpr std::int64_t default_max_bytes = 512LL << 20;
inline constexpr std::int64_t default_ring_bytes = 4LL << 20;

/// Reads AMPSCOPE_* and the variables that launchers set (RANK, LOCAL_RANK, WORLD_SIZE). Unknown values fall back to
/// the defaults: the command checks them before it starts the program.
[[nodiscard]] Options options_from_environment();

}  // namespace ampscope::record
