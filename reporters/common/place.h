// How a place in the user's program is written.
#pragma once

#include <string>
#include <string_view>

#include "trace/model.h"

namespace ampscope::reporters {

/// `file` relative to `directory` when it lies in it, as it is otherwise.
[[nodiscard]] std::string relative_path(std::string_view file, std::string_view directory);

/// "train.py:48", relative to the folder the program was started in; "" for an unknown place.
[[nodiscard]] std::string place(const trace::SourceLine& source, std::string_view working_directory);

}  // namespace ampscope::reporters
