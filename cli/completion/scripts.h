// Completion scripts, made from the options the command really has.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library names it
class App;
}

namespace ampscope::cli {

[[nodiscard]] std::string bash_completion(const CLI::App& app);
[[nodiscard]] std::string zsh_completion(const CLI::App& app);
[[nodiscard]] std::string fish_completion(const CLI::App& app);

}  // namespace ampscope::cli
