#include "cli/commands/report.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/app/report_flags.h"

namespace ampscope::cli {

Action declare_report(CLI::App& app, Context& /*context*/) {
  auto flags = std::make_shared<ReportFlags>();
  flags->declare(app);
  app.footer("Example: ampscope report run.ampscope --format html -o run.html");
  return [flags] {
    const Settings settings = Settings::load(std::filesystem::current_path().string());
    flags->check_output(settings);
    flags->write(flags->analyse(settings), settings);
    return 0;
  };
}

}  // namespace ampscope::cli
