#include "cli/output/render.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include "analyzers/core/registry.h"
#include "cli/app/error.h"
#include "reporters/ci/github.h"
#include "reporters/ci/junit.h"
#include "reporters/ci/sarif.h"
#include "reporters/html/html_report.h"
#include "reporters/json/json_report.h"
#include "reporters/terminal/terminal_report.h"

namespace ampscope::cli {

std::vector<reporters::RuleEntry> rule_entries() {
  std::vector<reporters::RuleEntry> entries;
  for (const analyzers::Rule* const rule : analyzers::all_rules()) {
    entries.push_back({rule->code, rule->name, rule->summary, rule->severity});
  }
  return entries;
}

void check_format(const std::string& format) {
  if (format != "html" || reporters::has_html_page()) return;
  const auto page = reporters::render_html({});
  if (const auto* const error = std::get_if<reporters::HtmlError>(&page)) throw UserError(error->message);
}

std::string render(const analyzers::Report& report, const RenderOptions& options) {
  if (options.format == "json") return reporters::render_json(report);
  if (options.format == "sarif") return reporters::render_sarif(report, rule_entries());
  if (options.format == "junit") return reporters::render_junit(report, rule_entries());
  if (options.format == "github") return reporters::render_github(report);
  if (options.format == "html") {
    auto page = reporters::render_html(report);
    if (const auto* const error = std::get_if<reporters::HtmlError>(&page)) throw UserError(error->message);
    return std::get<std::string>(std::move(page));
  }
  reporters::TerminalOptions terminal;
  terminal.width = options.width;
  terminal.colour = options.colour;
  terminal.all = options.all;
  terminal.next = options.next;
  terminal.show_all = options.show_all;
  return reporters::render_terminal(report, terminal);
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte < 0x80 &&
             (std::isalnum(byte) != 0 || std::string_view("_-./:=,@%+").find(c) != std::string_view::npos);
    });
    if (!out.empty()) out += ' ';
    if (plain) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word)
      out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace ampscope::cli
