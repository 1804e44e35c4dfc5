// What can be told of a program before it runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ampscope::cli {

/// Path of the executable that `name` starts, found as execvp finds it; nothing where there is none.
[[nodiscard]] std::optional<std::string> find_program(const std::string& name);

/// Why `name` cannot be started, in words that follow "cannot start 'name': "; "" where it can.
[[nodiscard]] std::string why_not_startable(const std::string& name);

/// Why a program started by `command` would not be seen, as far as its command line and file tell; "" where nothing
/// does.
[[nodiscard]] std::string why_not_observable(const std::vector<std::string>& command);

}  // namespace ampscope::cli
