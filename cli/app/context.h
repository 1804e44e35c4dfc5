// What every verb gets to work with.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ampscope::cli {

/// An option's value if it was given.
using Flag = std::optional<std::string>;

struct Context {
  /// Of `ampscope run`: the program to run with its arguments, word by word as typed. They are taken off before options
  /// are parsed, since nothing in them is ours to interpret.
  std::vector<std::string> program;
};

/// What a verb does once its options are parsed. Returns the exit status; throws UserError.
using Action = std::function<int()>;

}  // namespace ampscope::cli
