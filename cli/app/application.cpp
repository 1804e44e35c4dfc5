#include "cli/app/application.h"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "cli/app/error.h"
#include "cli/app/program_words.h"
#include "cli/app/suggest.h"
#include "cli/commands/check.h"
#include "cli/commands/completion.h"
#include "cli/commands/doctor.h"
#include "cli/commands/explain.h"
#include "cli/commands/info.h"
#include "cli/commands/report.h"
#include "cli/commands/rules.h"
#include "cli/commands/run.h"
#include "cli/commands/tune.h"
#include "cli/commands/version.h"
#include "cli/output/terminal.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

constexpr int broken = 2;
constexpr int not_started =
    125;  // as env(1), nice(1) and timeout(1) do, so that it is told from the program's own status

struct Verb {
  const char* name;
  const char* help;
  Action (*declare)(CLI::App&, Context&);
};

constexpr std::array<Verb, 10> verbs = {{
    {"run", "Run a training program and watch its numbers", declare_run},
    {"report", "Show what a recorded run holds", declare_report},
    {"check", "Fail when a recorded run has findings, for CI", declare_check},
    {"tune", "Recommend settings for the gradient scaler", declare_tune},
    {"explain", "Explain a rule: what it means, why, and how to repair it", declare_explain},
    {"rules", "List the rules", declare_rules},
    {"info", "Say what a trace holds and what of it was lost", declare_info},
    {"doctor", "Say whether a run would work here, and what to do if not", declare_doctor},
    {"version", "Print the version", declare_version},
    {"completion", "Print the completion script for a shell", declare_completion},
}};

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  names.reserve(verbs.size());
  for (const Verb& verb : verbs)
    names.emplace_back(verb.name);
  return names;
}

void complain(const std::string& verb, const std::string& message) {
  const std::string who = verb.empty() ? "ampscope" : "ampscope " + verb;
  print(Stream::err, fmt::format("{}: {}\n", who, reporters::printable(message)));
}

std::vector<std::string> long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  }
  return names;
}

/// What of the arguments no option took, as a sentence; "" when nothing was left.
std::string describe_leftover(const CLI::App& verb) {
  for (const std::string& word : verb.remaining()) {
    if (word.starts_with('-')) {
      const std::string name = word.substr(0, word.find('='));
      return fmt::format("unknown option '{}'{}", name, did_you_mean(name, long_options(verb)));
    }
  }
  if (verb.remaining_size() == 0) return {};
  return fmt::format("'{}' is one argument too many", verb.remaining().front());
}

int execute(Application& application, const std::string& name, std::vector<std::string> arguments) {
  const int mistake = name == "run" ? not_started : broken;
  CLI::App* const verb = application.app.get_subcommand(name);
  try {
    if (name == "run") application.context.program = take_program(*verb, arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes a vector from its end
    verb->parse(arguments);
    if (const std::string leftover = describe_leftover(*verb); !leftover.empty()) {
      complain(name, fmt::format("{} (ampscope {} --help)", leftover, name));
      return mistake;
    }
    return application.actions.at(name)();
  } catch (const CLI::CallForHelp&) {
    print(Stream::out, verb->help("ampscope"));
    return 0;
  } catch (const CLI::ParseError& error) {
    complain(name, fmt::format("{} (ampscope {} --help)", error.what(), name));
  } catch (const UserError& error) {
    complain(name, error.what());
  } catch (const std::exception& error) {
    complain(name, fmt::format("internal error: {}", error.what()));
  }
  return mistake;
}

}  // namespace

Application::Application() {
  app.name("ampscope");
  app.require_subcommand(1);
  // Through add_flag_function: CLI11 2.1 takes a text as the variable of a plain flag.
  app.add_flag_function("--version", [](std::int64_t) {}, "Print the version");
  app.footer("ampscope VERB --help tells more about a verb.");
  for (const Verb& verb : verbs) {
    CLI::App* const sub = app.add_subcommand(verb.name, verb.help);
    sub->allow_extras();  // so that we word the complaint
    actions[verb.name] = verb.declare(*sub, context);
  }
}

int run_command_line(std::vector<std::string> arguments) {
  Application application;
  if (arguments.size() >= 2 && arguments[0] == "help") arguments = {arguments[1], "--help"};
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print(arguments.empty() ? Stream::err : Stream::out, application.app.help());
    return arguments.empty() ? broken : 0;
  }
  if (arguments[0] == "--version") arguments = {"version"};
  const std::string name = arguments[0];
  if (!application.actions.contains(name)) {
    const char* const kind = name.starts_with('-') ? "option" : "verb";
    complain("", fmt::format("unknown {} '{}'{} (ampscope --help)", kind, name, did_you_mean(name, verb_names())));
    return broken;
  }
  arguments.erase(arguments.begin());
  return execute(application, name, std::move(arguments));
}

}  // namespace ampscope::cli
