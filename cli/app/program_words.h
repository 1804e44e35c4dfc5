// Where the options of `ampscope run` end and the program begins.
#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library names it
class App;
}

namespace ampscope::cli {

/// Takes the program and its arguments off `arguments`, those of `run`: what follows "--", or the first word that is
/// neither an option of `run` nor the value of one, and all behind it. Every word stays as it was typed.
[[nodiscard]] std::vector<std::string> take_program(const CLI::App& run, std::vector<std::string>& arguments);

}  // namespace ampscope::cli
