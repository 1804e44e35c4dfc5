#include "cli/commands/explain.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "analyzers/core/registry.h"
#include "cli/app/analysis_flags.h"
#include "cli/app/error.h"
#include "cli/app/suggest.h"
#include "cli/output/markdown.h"
#include "cli/output/terminal.h"

namespace ampscope::cli {

Action declare_explain(CLI::App& app, Context& /*context*/) {
  auto word = std::make_shared<std::string>();
  app.add_option("RULE", *word, "Code or name of a rule: AMP202, clip-before-unscale")->type_name("")->required();
  return [word] {
    const analyzers::Rule* const rule = analyzers::find_rule(*word);
    if (rule == nullptr) {
      throw UserError(
          fmt::format("there is no rule '{}'{} (ampscope rules lists them)", *word, did_you_mean(*word, rule_words())));
    }
    print(Stream::out,
          render_markdown(analyzers::rule_page(rule->code), terminal_width(Stream::out), use_colour(Stream::out)));
    return 0;
  };
}

}  // namespace ampscope::cli
