#include "cli/commands/info.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cli/app/error.h"
#include "cli/output/terminal.h"
#include "cli/settings/values.h"
#include "reporters/common/text.h"
#include "reporters/terminal/layout.h"
#include "reporters/terminal/paint.h"
#include "trace/describe.h"
#include "trace/reader.h"

namespace ampscope::cli {
namespace {

using nlohmann::ordered_json;

trace::Trace read(const std::string& path) {
  ProgressLine progress("reading " + path);
  auto result = trace::read_trace(path, [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
  if (const auto* const error = std::get_if<trace::ReadError>(&result)) throw UserError(error->message);
  return std::get<trace::Trace>(std::move(result));
}

ordered_json facts_json(const std::vector<trace::Fact>& facts) {
  ordered_json out = ordered_json::object();
  for (const trace::Fact& fact : facts)
    out[reporters::valid_utf8(fact.label)] = reporters::valid_utf8(fact.value);
  return out;
}

ordered_json as_json(const trace::Trace& read) {
  const trace::Description description = trace::describe(read);
  ordered_json sizes = ordered_json::array();
  for (const trace::KindSize& size : description.sizes) {
    sizes.push_back({{"kind", size.kind}, {"records", size.records}, {"bytes", size.bytes}});
  }
  ordered_json lost = ordered_json::array();
  for (const std::string& sentence : description.lost)
    lost.push_back(reporters::valid_utf8(sentence));
  return {
      {"file", facts_json(description.file)},
      {"run", facts_json(description.run)},
      {"contents", facts_json(description.contents)},
      {"recorder", facts_json(description.recorder)},
      {"sizes", std::move(sizes)},
      {"lost", std::move(lost)},
  };
}

class Sheet {
 public:
  Sheet(int width, bool colour) : width_(width), paint_(colour) {}

  void facts(const std::vector<trace::Fact>& facts) {
    for (const trace::Fact& fact : facts)
      row(fact.label, fact.value, reporters::Tone::plain);
    text_ += '\n';
  }

  void row(const std::string& label, const std::string& value, reporters::Tone tone) {
    constexpr int column = 14;
    std::string start = reporters::pad_right(reporters::printable(label), column - 1) + " ";
    for (const std::string& line : reporters::wrap(reporters::printable(value), width_ - column)) {
      text_ += start + paint_(tone, line) + "\n";
      start = std::string(column, ' ');
    }
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  int width_;
  reporters::Painter paint_;
  std::string text_;
};

std::string as_text(const trace::Trace& read, int width, bool colour) {
  const trace::Description description = trace::describe(read);
  Sheet sheet(width, colour);
  sheet.facts(description.file);
  sheet.facts(description.run);
  sheet.facts(description.contents);
  sheet.facts(description.recorder);
  std::string label = "lost";
  for (const std::string& sentence : description.lost) {
    sheet.row(label, sentence, reporters::Tone::warning);
    label.clear();
  }
  if (description.lost.empty()) sheet.row(label, "nothing", reporters::Tone::plain);
  return sheet.text();
}

}  // namespace

Action declare_info(CLI::App& app, Context& /*context*/) {
  struct State {
    std::vector<std::string> traces;
    std::string format = "terminal";
  };
  auto state = std::make_shared<State>();
  app.add_option("TRACE", state->traces, "Traces to look at")->type_name("FILE")->required();
  app.add_option("--format", state->format, "terminal or json (default terminal)")->type_name("LISTFORMAT");
  return [state] {
    const bool json = parse_choice(state->format, {"terminal", "json"}, "format", "--format") == "json";
    ordered_json documents = ordered_json::array();
    std::string text;
    for (const std::string& path : state->traces) {
      const trace::Trace trace = read(path);
      if (json) {
        documents.push_back(as_json(trace));
      } else {
        text += (text.empty() ? "" : "\n") + as_text(trace, terminal_width(Stream::out), use_colour(Stream::out));
      }
    }
    if (json) text = ordered_json({{"schema", "ampscope.info/1"}, {"traces", std::move(documents)}}).dump(2) + "\n";
    print(Stream::out, text);
    return 0;
  };
}

}  // namespace ampscope::cli
