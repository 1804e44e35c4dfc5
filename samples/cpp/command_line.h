// The options of both samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "executor/training_executor.h"

namespace ampscope::samples {

struct CommandLine {
  std::optional<std::int64_t> steps;
  std::uint64_t seed = 1;
  std::optional<executor::Precision> precision;
  std::string save;   ///< file for the final weights, empty for none
  std::string fault;  ///< empty: healthy
  bool print_losses = false;
  bool by_hand = false;
  bool convolution = false;
};

/// Reads the options, and ends the program for --help, --list-faults and wrong ones. `convolution` tells whether the
/// program has that option.
CommandLine parse_command_line(int argc, char** argv, const std::string& description, bool convolution);

}  // namespace ampscope::samples
