#include "cli/commands/check.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "cli/app/error.h"
#include "cli/app/report_flags.h"
#include "cli/check/baseline.h"
#include "cli/check/verdict.h"
#include "cli/output/file.h"
#include "cli/output/terminal.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

void say(const std::string& sentence) {
  print(Stream::err, fmt::format("ampscope: {}\n", reporters::printable(sentence)));
}

struct Check {
  ReportFlags flags;
  Flag fail_on;
  Flag baseline;
  Flag write_baseline;

  int execute() const {
    const Settings settings = Settings::load(std::filesystem::current_path().string());
    const Setting severity = settings.get("check.fail_on", fail_on);
    const analyzers::Severity threshold = parse_fail_on(severity.text, severity.origin);
    flags.check_output(settings);
    if (write_baseline) {
      if (baseline) throw UserError("--baseline and --write-baseline exclude each other");
      check_writable(*write_baseline, flags.force());
    }

    analyzers::Report report = flags.analyse(settings);
    if (report.run.steps == 0 && report.findings.empty()) {
      throw UserError("the trace holds no finished training step, so there is nothing to check");
    }
    if (write_baseline) {
      write_file(*write_baseline, make_baseline(report), flags.force());
      say(fmt::format("{} written with {}", *write_baseline,
                      analyzers::plural(static_cast<std::int64_t>(report.findings.size()), "finding")));
      return 0;
    }
    if (const std::string path = settings.get("check.baseline", baseline).text; !path.empty()) {
      const BaselineResult result = apply_baseline(read_file(path), path, report);
      if (result.known > 0) say(fmt::format("{} known from {}", analyzers::plural(result.known, "finding"), path));
      if (result.gone > 0) {
        say(fmt::format("{} of {} not found any more; write it anew with --write-baseline",
                        analyzers::plural(result.gone, "finding"), path));
      }
    }
    flags.write(report, settings);
    return fails(report, threshold) ? 1 : 0;
  }
};

}  // namespace

Action declare_check(CLI::App& app, Context& /*context*/) {
  auto check = std::make_shared<Check>();
  check->flags.declare(app);
  app.add_option("--fail-on", check->fail_on,
                 "Fail on findings of this severity or worse: warning or error (default warning)")
      ->type_name("SEVERITY");
  app.add_option("--baseline", check->baseline, "Pass over the findings in this file")->type_name("FILE");
  app.add_option("--write-baseline", check->write_baseline, "Write today's findings to this file and exit with 0")
      ->type_name("FILE");
  app.footer("Exit status: 0 nothing found, 1 findings, 2 the check could not be made.");
  return [check] { return check->execute(); };
}

}  // namespace ampscope::cli
