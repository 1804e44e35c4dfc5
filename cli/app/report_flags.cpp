#include "cli/app/report_flags.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/engine.h"
#include "cli/app/error.h"
#include "cli/output/file.h"
#include "cli/output/render.h"
#include "cli/output/terminal.h"
#include "cli/settings/values.h"
#include "cli/traces/load.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

void say(const std::string& sentence) {
  print(Stream::err, fmt::format("ampscope: {}\n", reporters::printable(sentence)));
}

std::string format_of(const Settings& settings, const Flag& flag) {
  const Setting format = settings.get("report.format", flag);
  return parse_choice(format.text, format_names(), "format", format.origin);
}

}  // namespace

void ReportFlags::declare(CLI::App& app) {
  app.add_option("TRACE", traces_, "Traces of one run; those of its other processes are found beside them")
      ->type_name("FILE")
      ->required();
  app.add_option("--format", format_, "terminal, json, html, sarif, junit or github (default terminal)")
      ->type_name("FORMAT");
  app.add_option("-o,--output", output_, "Write the report to a file instead of stdout")->type_name("FILE");
  app.add_flag("-f,--force", force_, "Replace the file when it exists");
  app.add_flag("--all", all_, "On a terminal: every finding in full");
  analysis_.declare(app);
}

analyzers::Report ReportFlags::analyse(const Settings& settings) const {
  const analyzers::AnalysisOptions options = analysis_.options(settings);
  const std::vector<std::string> paths = with_siblings(traces_);
  if (paths.size() > traces_.size()) {
    say(fmt::format("also reading {}, of the same run",
                    fmt::join(paths.begin() + static_cast<std::ptrdiff_t>(traces_.size()), paths.end(), ", ")));
  }
  const LoadedTraces loaded = load_traces(paths);
  for (const std::string& warning : loaded.warnings)
    say(warning);
  return analyzers::analyze(loaded.traces, options);
}

void ReportFlags::check_output(const Settings& settings) const {
  const std::string format = format_of(settings, format_);
  check_format(format);
  if (output_) {
    check_writable(*output_, force_);
  } else if (format == "html" && is_terminal(Stream::out)) {
    throw UserError("an HTML report is a file; say where it goes: -o run.html");
  }
}

void ReportFlags::write(const analyzers::Report& report, const Settings& settings) const {
  RenderOptions options;
  options.format = format_of(settings, format_);
  options.all = all_;
  options.show_all = shell_command({"ampscope", "report", traces_.front(), "--all"});
  const std::string page = std::filesystem::path(traces_.front()).replace_extension(".html").filename().string();
  options.next = shell_command({"ampscope", "report", traces_.front(), "--format", "html", "-o", page});
  if (!output_) {
    options.width = terminal_width(Stream::out);
    options.colour = use_colour(Stream::out);
  }
  const std::string text = render(report, options);
  if (output_) {
    write_file(*output_, text, force_);
    say(fmt::format("{} written", *output_));
  } else if (!print(Stream::out, text)) {
    throw UserError("stdout takes no more; the report is not complete");
  }
}

}  // namespace ampscope::cli
