#include "cli/commands/run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <signal.h>

#include "analyzers/core/engine.h"
#include "cli/app/analysis_flags.h"
#include "cli/app/error.h"
#include "cli/check/verdict.h"
#include "cli/output/file.h"
#include "cli/output/render.h"
#include "cli/output/terminal.h"
#include "cli/process/child.h"
#include "cli/process/installation.h"
#include "cli/process/launch.h"
#include "cli/process/program.h"
#include "cli/process/status_file.h"
#include "cli/repro/bundle.h"
#include "cli/settings/settings.h"
#include "cli/settings/values.h"
#include "cli/traces/load.h"
#include "cli/traces/names.h"
#include "reporters/common/place.h"
#include "reporters/common/text.h"
#include "trace/reader.h"
#include "trace/writer.h"

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

void say(const std::string& sentence) {
  print(Stream::err, fmt::format("ampscope: {}\n", reporters::printable(sentence)));
}

class Run {
 public:
  explicit Run(Context& context) : context_(context) {}

  void declare(CLI::App& app) {
    app.add_option("-o,--output", output_, "Trace to write; %p, %r, %h are pid, rank, host (default run.ampscope)")
        ->type_name("FILE");
    app.add_flag("-f,--force", force_, "Replace the traces of an earlier run, and the HTML report");
    app.add_option("--level", level_, "How much to record: ops, grads, auto, full or shadow (default auto)")
        ->type_name("LEVEL");
    app.add_option("--budget", budget_,
                   "Most that recording may add to the run's time: 2%; steps are then drawn (default no limit)")
        ->type_name("PERCENT");
    app.add_option("--max-size", max_size_, "Largest trace of one process (default 512MiB)")->type_name("SIZE");
    app.add_flag("--check", check_, "Exit with 1 when the program succeeded and there are findings");
    app.add_option("--fail-on", fail_on_, "What --check takes for a finding: warning or error (default warning)")
        ->type_name("SEVERITY");
    app.add_option("--html", html_, "Also write the HTML report")->type_name("FILE");
    app.add_option("--repro", repro_, "Keep the call that made the first NaN or infinity, with a program that shows it")
        ->type_name("DIR");
    app.add_flag("-q,--quiet", quiet_, "No summary after the run");
    flags_.declare(app);
    app.add_option("COMMAND", "The program and its arguments; nothing in them is taken for an option of ampscope")
        ->type_name("");
    app.footer(
        "The exit status is the program's (128 + signal when a signal ended it), 125 when it could not be started.\n"
        "Examples:\n  ampscope run -- python train.py --epochs 3\n  ampscope run -o runs/%h.ampscope -- torchrun "
        "--nproc-per-node 4 train.py");
  }

  int execute() {
    prepare();
    const StatusFile status_file;
    launch_.status_file = status_file.path();
    const ChildResult child = run_child(context_.program, launch_environment(launch_, installation_));
    if (!child.started) throw UserError(fmt::format("cannot start '{}': {}", context_.program.front(), child.error));

    // From here on the exit status is the program's, whatever becomes of the summary.
    signal(SIGPIPE, SIG_IGN);
    try {
      return std::max(child.status, summarise(child.status, status_file.messages()));
    } catch (const std::exception& error) {
      say(error.what());
      return child.status == 0 && checking_ ? 2 : child.status;
    }
  }

 private:
  /// Everything that can be wrong is found before the program starts: a training that is only then found unobserved may
  /// have cost days.
  void prepare() {
    if (context_.program.empty()) {
      throw UserError("no program to run; write it behind the options: ampscope run -- python train.py");
    }
    const std::string directory = fs::current_path().string();
    const Settings settings = Settings::load(directory);
    const Setting output = settings.get("run.output", output_);
    const Setting level = settings.get("run.level", level_);
    const Setting budget = settings.get("run.budget", budget_);
    const Setting max_size = settings.get("run.max_size", max_size_);
    const Setting check = settings.get("run.check", check_ ? Flag("true") : std::nullopt);
    const Setting quiet = settings.get("run.quiet", quiet_ ? Flag("true") : std::nullopt);
    const Setting fail_on = settings.get("check.fail_on", fail_on_);

    launch_.command = context_.program;
    launch_.directory = directory;
    launch_.level = parse_choice(level.text, level_names(), "level", level.origin);
    if (!budget.text.empty()) launch_.budget_percent = parse_percent(budget.text, budget.origin);
    tell_what_is_not_there_yet();
    launch_.max_bytes = parse_size(max_size.text, max_size.origin);
    launch_.run_id = new_run_id();
    checking_ = parse_switch(check.text, check.origin);
    silent_ = parse_switch(quiet.text, quiet.origin);
    threshold_ = parse_fail_on(fail_on.text, fail_on.origin);
    analysis_ = flags_.options(settings);

    installation_ = find_installation(settings.get("install.lib_dir").text);
    if (!installation_.can_observe()) {
      throw UserError(fmt::format("the parts that watch a program are not in {}; `ampscope doctor` says what to do",
                                  installation_.lib_dir));
    }
    if (!installation_.unnameable.empty()) say("C++ programs are not watched: " + installation_.unnameable);
    if (const std::string reason = why_not_startable(context_.program.front()); !reason.empty()) {
      throw UserError(fmt::format("cannot start '{}': {}", context_.program.front(), reason));
    }

    name_.emplace(output.text, directory);
    launch_.output = name_->pattern();
    html_path_ = settings.get("run.html", html_).text;
    if (!html_path_.empty()) {
      check_format("html");
      check_writable(html_path_, force_);
    }
    const std::string repro = settings.get("run.repro", repro_).text;
    if (!repro.empty()) launch_.repro_folder = prepare_repro_folder(repro, force_);
    check_writable(name_->path().empty() ? name_->folder() + "/ampscope.trace" : name_->path(), true);
    make_room(*name_);
  }

  /// Asked for by a name this release knows and does less for; nobody is to find out from the figures.
  void tell_what_is_not_there_yet() const {
    if (launch_.level == "shadow") {
      print(Stream::err, "ampscope: the level shadow is not in this release; recording at the level full\n");
    }
  }

  /// Traces of an earlier run with this name are in the way: of them and the new ones no report could be made.
  void make_room(const OutputName& name) const {
    for (const std::string& path : name.existing()) {
      const std::string shown = reporters::relative_path(path, launch_.directory);
      std::error_code error;
      const bool empty = fs::is_regular_file(path, error) && fs::file_size(path, error) == 0;
      const bool trace = empty || trace::looks_like_trace(path);
      if (path != name.path() && !trace) continue;  // a file with a similar name
      if (!force_) {
        throw UserError(fmt::format("{} exists; choose another name with -o, or replace it with --force", shown));
      }
      if (!trace)
        throw UserError(fmt::format("{} is no trace, so --force does not replace it; choose another -o", shown));
      if (!fs::remove(path, error)) throw UserError(fmt::format("cannot remove {} ({})", shown, error.message()));
    }
  }

  /// Returns the exit status that findings ask for: 0 without --check.
  int summarise(int child_status, const std::vector<std::string>& notices) const {
    const std::vector<std::string> paths = traces_of_run(name_->existing(), launch_.run_id);
    if (paths.empty()) {
      explain_silence(notices);
      return checking_ && child_status == 0 ? 2 : 0;
    }
    // Told once already while the program ran, but that may be a long way up by now.
    for (const std::string& notice : notices)
      say("one of the processes was not watched: " + notice);
    for (const std::string& path : paths)
      append_exit_status(path, child_status);

    LoadedTraces loaded = load_traces(paths);
    const analyzers::Report report = analyzers::analyze(loaded.traces, analysis_);
    for (const std::string& warning : loaded.warnings)
      say(warning);
    if (!html_path_.empty()) {
      RenderOptions options;
      options.format = "html";
      write_file(html_path_, render(report, options), force_);
    }
    if (!silent_) print(Stream::err, summary(report, paths));
    if (!launch_.repro_folder.empty()) say(finish_repro_folder(launch_.repro_folder, report));
    if (!checking_ || child_status != 0) return 0;
    if (report.run.steps == 0) return 2;  // nothing was looked at, which must not pass for health
    return fails(report, threshold_) ? 1 : 0;
  }

  [[nodiscard]] std::string summary(const analyzers::Report& report, const std::vector<std::string>& paths) const {
    const auto main = std::min_element(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
      return a.size() < b.size();  // run.ampscope before run.rank1.ampscope
    });
    const std::string trace = reporters::relative_path(*main, launch_.directory);
    RenderOptions options;
    options.width = terminal_width(Stream::err);
    options.colour = use_colour(Stream::err);
    options.show_all = shell_command({"ampscope", "report", trace, "--all"});
    const std::string page = fs::path(trace).replace_extension(".html").filename().string();
    options.next = html_path_.empty() ? shell_command({"ampscope", "report", trace, "--format", "html", "-o", page})
                                      : "open " + shell_command({html_path_}) + " in a browser";
    return "\n" + render(report, options);
  }

  static void append_exit_status(const std::string& path, int status) {
    trace::Writer writer;
    trace::ExitStatus record;
    record.status = status;
    if (!writer.append(path)) {
      say(writer.error());
      return;
    }
    writer.add(record);
    if (!writer.close()) say(writer.error());
  }

  void explain_silence(const std::vector<std::string>& notices) const {
    if (!notices.empty()) {
      for (const std::string& notice : notices)
        say("no training was seen: " + notice);
      return;
    }
    std::string reason = why_not_observable(context_.program);
    if (reason.empty()) {
      reason =
          "no process of it ran a backward pass with PyTorch or LibTorch where ampscope could see it. Did it end "
          "before "
          "the first step, clear its environment, or bring a LibTorch that is linked statically? `ampscope doctor` "
          "looks "
          "at this machine";
    }
    say("no training was seen: " + reason);
  }

  Context& context_;
  Flag output_;
  Flag level_;
  Flag budget_;
  Flag max_size_;
  Flag fail_on_;
  Flag html_;
  Flag repro_;
  bool force_ = false;
  bool check_ = false;
  bool quiet_ = false;
  AnalysisFlags flags_;

  LaunchOptions launch_;
  Installation installation_;
  analyzers::AnalysisOptions analysis_;
  analyzers::Severity threshold_ = analyzers::Severity::warning;
  std::optional<OutputName> name_;
  std::string html_path_;
  bool checking_ = false;
  bool silent_ = false;
};

}  // namespace

Action declare_run(CLI::App& app, Context& context) {
  auto run = std::make_shared<Run>(context);
  run->declare(app);
  return [run] { return run->execute(); };
}

}  // namespace ampscope::cli
