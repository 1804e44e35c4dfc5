#include "cli/commands/rules.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/registry.h"
#include "cli/output/terminal.h"
#include "cli/settings/values.h"
#include "reporters/common/text.h"
#include "reporters/terminal/layout.h"
#include "reporters/terminal/paint.h"

namespace ampscope::cli {
namespace {

using analyzers::Rule;

std::string as_json() {
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (const Rule* const rule : analyzers::all_rules()) {
    nlohmann::ordered_json needs = nlohmann::ordered_json::array();
    for (const analyzers::Stream stream : rule->needs)
      needs.push_back(analyzers::stream_need(stream));
    nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
    for (const analyzers::ParameterSpec& parameter : rule->parameters) {
      parameters.push_back({{"name", parameter.name},
                            {"default", parameter.default_value},
                            {"minimum", parameter.minimum},
                            {"maximum", parameter.maximum},
                            {"integer", parameter.integer},
                            {"help", parameter.help}});
    }
    rules.push_back({{"code", rule->code},
                     {"name", rule->name},
                     {"family", analyzers::family_name(rule->family)},
                     {"severity", analyzers::severity_name(rule->severity)},
                     {"summary", rule->summary},
                     {"precision_fault", rule->precision_fault},
                     {"needs", std::move(needs)},
                     {"parameters", std::move(parameters)}});
  }
  return nlohmann::ordered_json({{"schema", "ampscope.rules/1"}, {"rules", std::move(rules)}}).dump(2) + "\n";
}

std::string as_table(int width, bool colour) {
  const reporters::Painter paint(colour);
  int name_width = 0;
  for (const Rule* const rule : analyzers::all_rules()) {
    name_width = std::max(name_width, reporters::display_width(rule->name));
  }
  std::string out;
  std::string_view family;
  for (const Rule* const rule : analyzers::all_rules()) {
    if (const char* const its_family = analyzers::family_name(rule->family); family != its_family) {
      out += (out.empty() ? "" : "\n") + paint(reporters::Tone::strong, its_family) + "\n";
      family = its_family;
    }
    const int column = 2 + 6 + 2 + name_width + 2 + 7 + 2;
    std::string start = fmt::format("  {}  {}  {}  ", paint(reporters::Tone::strong, rule->code),
                                    reporters::pad_right(rule->name, name_width),
                                    reporters::pad_right(analyzers::severity_name(rule->severity), 7));
    constexpr int least = 45;  // columns in which a sentence can still be read
    if (width - column < least) {
      out += start.substr(0, start.find_last_not_of(' ') + 1) + "\n";
      start = "      ";
    }
    const int indent = width - column < least ? 6 : column;
    for (const std::string& line : reporters::wrap(rule->summary, width - indent)) {
      out += start + line + "\n";
      start = std::string(static_cast<std::size_t>(indent), ' ');
    }
  }
  return out + "\nampscope explain CODE tells more about a rule.\n";
}

}  // namespace

Action declare_rules(CLI::App& app, Context& /*context*/) {
  auto format = std::make_shared<std::string>("terminal");
  app.add_option("--format", *format, "terminal or json (default terminal)")->type_name("LISTFORMAT");
  return [format] {
    const bool json = parse_choice(*format, {"terminal", "json"}, "format", "--format") == "json";
    print(Stream::out, json ? as_json() : as_table(terminal_width(Stream::out), use_colour(Stream::out)));
    return 0;
  };
}

}  // namespace ampscope::cli
