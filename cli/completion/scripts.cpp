#include "cli/completion/scripts.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/registry.h"
#include "cli/settings/values.h"

namespace ampscope::cli {
namespace {

/// What can stand where an option or argument wants a value.
struct Values {
  std::vector<std::string> words;
  bool files = false;
};

std::vector<std::string> rule_codes() {
  std::vector<std::string> codes;
  for (const analyzers::Rule* const rule : analyzers::all_rules())
    codes.emplace_back(rule->code);
  return codes;
}

Values values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "FILE") return {{}, true};
  if (type == "LEVEL") return {level_names(), false};
  if (type == "SEVERITY") return {severity_names(), false};
  if (type == "FORMAT") return {format_names(), false};
  if (type == "LISTFORMAT") return {{"terminal", "json"}, false};
  if (type == "RULES") return {rule_codes(), false};
  if (option.get_name() == "RULE") return {rule_codes(), false};
  if (option.get_name() == "SHELL") return {{"bash", "zsh", "fish"}, false};
  return {};
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back("-" + name);
  for (const std::string& name : option.get_lnames())
    names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_min() > 0;
}

/// `text` within single quotes of a shell that knows no escape inside them.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string cases;
  std::vector<std::string> verb_names;
  for (const CLI::App* const verb : verbs_of(app)) {
    verb_names.push_back(verb->get_name());
    std::vector<std::string> options;
    std::string arguments;  // what to offer for words that are no options
    std::string values;
    for (const CLI::Option* const option : verb->get_options()) {
      const Values offered = values_of(*option);
      const std::string offer = offered.files
                                    ? "compgen -f -- \"$word\""
                                    : fmt::format("compgen -W {} -- \"$word\"",
                                                  shell_quoted(fmt::format("{}", fmt::join(offered.words, " "))));
      if (option->get_positional()) {
        if (offered.files || !offered.words.empty()) arguments = offer;
        continue;
      }
      const std::vector<std::string> names = names_of(*option);
      options.insert(options.end(), names.begin(), names.end());
      if (takes_value(*option)) {
        values += fmt::format("        {}) mapfile -t COMPREPLY < <({}); return ;;\n", fmt::join(names, "|"), offer);
      }
    }
    cases += fmt::format("    {})\n      case \"$previous\" in\n{}      esac\n", verb->get_name(), values);
    cases += fmt::format(
        "      if [[ $word == -* ]]; then mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\"); return; fi\n",
        shell_quoted(fmt::format("{}", fmt::join(options, " "))));
    // The program of a run and its arguments complete as they do without us.
    if (verb->get_name() == "run") arguments = "compgen -c -f -- \"$word\"";
    if (!arguments.empty()) cases += fmt::format("      mapfile -t COMPREPLY < <({})\n", arguments);
    cases += "      ;;\n";
  }
  return fmt::format(
      "# bash completion for ampscope: eval \"$(ampscope completion bash)\"\n"
      "_ampscope() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}\n"
      "  COMPREPLY=()\n"
      "  if (( COMP_CWORD == 1 )); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\"); return\n"
      "  fi\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}  esac\n"
      "}}\n"
      "complete -o filenames -F _ampscope ampscope\n",
      shell_quoted(fmt::format("{} --help --version", fmt::join(verb_names, " "))), cases);
}

std::string zsh_completion(const CLI::App& app) {
  // Inside a specification of _arguments, brackets and colons have a meaning.
  const auto escaped = [](std::string_view text) {
    std::string out;
    for (const char c : text)
      out += std::string_view("[]:\\").find(c) == std::string_view::npos ? std::string(1, c) : std::string("\\") + c;
    return out;
  };
  std::string verbs;
  std::string cases;
  for (const CLI::App* const verb : verbs_of(app)) {
    verbs += fmt::format("    {}\n", shell_quoted(verb->get_name() + ":" + escaped(verb->get_description())));
    cases += fmt::format("      {})\n        _arguments -s \\\n", verb->get_name());
    std::string arguments;
    for (const CLI::Option* const option : verb->get_options()) {
      const Values offered = values_of(*option);
      std::string action;
      if (offered.files) action = "_files";
      if (!offered.words.empty()) action = fmt::format("({})", fmt::join(offered.words, " "));
      if (option->get_positional()) {
        if (verb->get_name() == "run") action = "_normal";
        const char* const repeated = verb->get_name() == "run" ? "*::" : "*:";
        arguments =
            fmt::format("          {}", shell_quoted(fmt::format("{}{}:{}", repeated, option->get_name(), action)));
        continue;
      }
      for (const std::string& name : names_of(*option)) {
        const std::string value =
            takes_value(*option) ? fmt::format(":{}:{}", escaped(option->get_type_name()), action) : "";
        cases += fmt::format("          {} \\\n",
                             shell_quoted(fmt::format("{}[{}]{}", name, escaped(option->get_description()), value)));
      }
    }
    cases += (arguments.empty() ? "          '*:'" : arguments) + "\n        ;;\n";
  }
  return fmt::format(
      "#compdef ampscope\n"
      "# zsh completion for ampscope: write this to a file _ampscope in a folder of $fpath\n"
      "_ampscope() {{\n"
      "  local -a verbs\n  verbs=(\n{}  )\n"
      "  local context state state_descr line\n  typeset -A opt_args\n"
      "  _arguments -C '--version[Print the version]' '--help[Print help]' '1:verb:->verb' '*::argument:->arguments'\n"
      "  case $state in\n"
      "    verb) _describe verb verbs ;;\n"
      "    arguments)\n      case $words[1] in\n{}      esac ;;\n"
      "  esac\n"
      "}}\n"
      "compdef _ampscope ampscope\n",
      verbs, cases);
}

std::string fish_completion(const CLI::App& app) {
  // fish knows \' inside single quotes.
  const auto single = [](std::string_view text) {
    std::string out = "'";
    for (const char c : text)
      out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return out + "'";
  };
  std::string out =
      "# fish completion for ampscope: ampscope completion fish > ~/.config/fish/completions/ampscope.fish\n";
  out += "complete -c ampscope -f\n";
  out += "complete -c ampscope -n __fish_use_subcommand -l version -d 'Print the version'\n";
  for (const CLI::App* const verb : verbs_of(app)) {
    const std::string name = verb->get_name();
    out += fmt::format("complete -c ampscope -n __fish_use_subcommand -a {} -d {}\n", name,
                       single(verb->get_description()));
    const std::string when = fmt::format("complete -c ampscope -n '__fish_seen_subcommand_from {}'", name);
    for (const CLI::Option* const option : verb->get_options()) {
      const Values offered = values_of(*option);
      const std::string words = single(fmt::format("{}", fmt::join(offered.words, " ")));
      if (option->get_positional()) {
        if (name == "run") out += when + " -xa '(__fish_complete_subcommand)'\n";
        if (offered.files) out += when + " -F\n";
        if (!offered.words.empty()) out += fmt::format("{} -a {}\n", when, words);
        continue;
      }
      out += when;
      for (const std::string& letter : option->get_snames())
        out += " -s " + letter;
      for (const std::string& word : option->get_lnames())
        out += " -l " + word;
      if (takes_value(*option)) out += offered.files ? " -r -F" : " -x";
      if (!offered.words.empty()) out += " -a " + words;
      out += fmt::format(" -d {}\n", single(option->get_description()));
    }
  }
  return out;
}

}  // namespace ampscope::cli
