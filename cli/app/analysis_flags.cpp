#include "cli/app/analysis_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "analyzers/core/registry.h"
#include "cli/app/error.h"
#include "cli/app/suggest.h"
#include "cli/settings/values.h"

namespace ampscope::cli {
namespace {

/// "AMP302.min_skips=6" into the parameters.
void add_parameter(const std::string& text, std::map<std::string, std::map<std::string, double>>& parameters) {
  const std::size_t dot = text.find('.');
  const std::size_t equals = text.find('=');
  double value = 0;
  const char* const end = text.data() + text.size();
  const bool shaped = dot != std::string::npos && equals != std::string::npos && dot < equals;
  const auto read = shaped ? std::from_chars(text.data() + equals + 1, end, value) : std::from_chars_result{};
  if (!shaped || read.ec != std::errc() || read.ptr != end) {
    throw UserError(
        fmt::format("--set: '{}' is not of the form RULE.PARAMETER=NUMBER, such as AMP302.min_skips=6", text));
  }
  std::string rule = text.substr(0, dot);
  if (const analyzers::Rule* const known = analyzers::find_rule(rule); known != nullptr) rule = known->code;
  parameters[rule][text.substr(dot + 1, equals - dot - 1)] = value;
}

/// A word that chooses rules chooses at least one.
void check_words(const std::vector<std::string>& words, const std::string& origin) {
  for (const std::string& word : words) {
    bool known = analyzers::find_rule(word) != nullptr;
    for (const analyzers::Rule* const rule : analyzers::all_rules()) {
      std::string upper = word;
      for (char& c : upper)
        c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      known = known || std::string_view(rule->code).starts_with(upper);
    }
    if (!known) {
      throw UserError(fmt::format("{}: there is no rule '{}'{} (ampscope rules lists them)", origin, word,
                                  did_you_mean(word, rule_words())));
    }
  }
}

}  // namespace

std::vector<std::string> rule_words() {
  std::vector<std::string> words;
  for (const analyzers::Rule* const rule : analyzers::all_rules()) {
    words.emplace_back(rule->code);
    words.emplace_back(rule->name);
  }
  return words;
}

void AnalysisFlags::declare(CLI::App& app) {
  app.add_option("--select", select_, "Use only these rules: codes, beginnings of codes, or names, between commas")
      ->type_name("RULES");
  app.add_option("--ignore", ignore_, "Do not use these rules")->type_name("RULES");
  app.add_option("--min-severity", min_severity_, "Leave out findings below: info, warning or error (default info)")
      ->type_name("SEVERITY");
  app.add_option("--set", set_, "Set a parameter of a rule: AMP302.min_skips=6 (can be repeated)")
      ->type_name("RULE.PARAMETER=NUMBER")
      ->expected(1)
      ->take_all();
}

analyzers::AnalysisOptions AnalysisFlags::options(const Settings& settings) const {
  analyzers::AnalysisOptions options;
  const Setting select = settings.get("rules.select", select_);
  const Setting ignore = settings.get("rules.ignore", ignore_);
  const Setting severity = settings.get("rules.min_severity", min_severity_);
  options.select = split_list(select.text);
  options.ignore = split_list(ignore.text);
  check_words(options.select, select.origin);
  check_words(options.ignore, ignore.origin);
  options.min_severity = parse_severity(severity.text, severity.origin);
  options.parameters = settings.rule_parameters();
  for (const std::string& text : set_)
    add_parameter(text, options.parameters);
  if (const std::vector<std::string> wrong = analyzers::check_options(options); !wrong.empty()) {
    throw UserError(wrong.front());
  }
  return options;
}

}  // namespace ampscope::cli
