#include "cli/commands/tune.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "analyzers/scaler/tuning_report.h"
#include "cli/app/error.h"
#include "cli/output/terminal.h"
#include "cli/settings/values.h"
#include "cli/traces/load.h"
#include "reporters/common/text.h"
#include "reporters/json/tuning_json.h"
#include "reporters/terminal/tuning_text.h"

namespace ampscope::cli {
namespace {

struct State {
  std::string trace;
  std::string format = "terminal";
  analyzers::SettingsQuestion question;
};

void check_question(const analyzers::SettingsQuestion& question) {
  const auto refuse = [](const char* flag, const char* what) {
    throw UserError(fmt::format("{} must be {}", flag, what));
  };
  const auto positive = [](double value) { return std::isfinite(value) && value > 0; };
  if (question.init_scale && !positive(*question.init_scale)) refuse("--init-scale", "a number above 0");
  if (question.growth_factor && !(positive(*question.growth_factor) && *question.growth_factor > 1)) {
    refuse("--growth-factor", "above 1");
  }
  if (question.backoff_factor && !(positive(*question.backoff_factor) && *question.backoff_factor < 1)) {
    refuse("--backoff-factor", "between 0 and 1");
  }
  if (question.growth_interval && (*question.growth_interval < 1 || *question.growth_interval > 2'147'483'647)) {
    refuse("--growth-interval", "a whole number from 1 on");
  }
}

}  // namespace

Action declare_tune(CLI::App& app, Context& /*context*/) {
  auto state = std::make_shared<State>();
  app.add_option("TRACE", state->trace, "Trace of a run with a gradient scaler")->type_name("FILE")->required();
  app.add_option("--format", state->format, "terminal or json (default terminal)")->type_name("LISTFORMAT");
  app.add_option("--init-scale", state->question.init_scale, "What if: another init_scale")->type_name("NUMBER");
  app.add_option("--growth-factor", state->question.growth_factor, "What if: another growth_factor")
      ->type_name("NUMBER");
  app.add_option("--backoff-factor", state->question.backoff_factor, "What if: another backoff_factor")
      ->type_name("NUMBER");
  app.add_option("--growth-interval", state->question.growth_interval, "What if: another growth_interval")
      ->type_name("NUMBER");
  app.footer("Example: ampscope tune run.ampscope --growth-factor 1.5 --growth-interval 5000");
  return [state] {
    const bool json = parse_choice(state->format, {"terminal", "json"}, "format", "--format") == "json";
    check_question(state->question);
    const LoadedTraces loaded = load_traces({state->trace});
    for (const std::string& warning : loaded.warnings)
      print(Stream::err, fmt::format("ampscope: {}\n", reporters::printable(warning)));
    const analyzers::TraceView view(loaded.traces.front());
    const auto scalers = analyzers::report_tuning(view, state->question);
    if (scalers.empty()) throw UserError(state->trace + " holds no gradient scaler; there is nothing to tune");
    print(Stream::out, json ? reporters::render_tuning_json(scalers)
                            : reporters::render_tuning(scalers, terminal_width(Stream::out), use_colour(Stream::out)));
    return 0;
  };
}

}  // namespace ampscope::cli
