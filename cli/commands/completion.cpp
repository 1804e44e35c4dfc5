#include "cli/commands/completion.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/completion/scripts.h"
#include "cli/output/terminal.h"
#include "cli/settings/values.h"

namespace ampscope::cli {

Action declare_completion(CLI::App& app, Context& /*context*/) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")->type_name("")->required();
  app.footer("Example: eval \"$(ampscope completion bash)\"");
  const CLI::App* const whole = app.get_parent();
  return [shell, whole] {
    const std::string name = parse_choice(*shell, {"bash", "zsh", "fish"}, "shell", "completion");
    print(Stream::out, name == "bash"  ? bash_completion(*whole)
                       : name == "zsh" ? zsh_completion(*whole)
                                       : fish_completion(*whole));
    return 0;
  };
}

}  // namespace ampscope::cli
