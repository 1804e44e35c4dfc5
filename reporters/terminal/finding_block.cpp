#include "reporters/terminal/finding_block.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "reporters/common/place.h"
#include "reporters/common/text.h"
#include "reporters/terminal/chain_lines.h"
#include "reporters/terminal/layout.h"

namespace ampscope::reporters {
namespace {

constexpr int label_column = 2;
constexpr int text_column = 16;

std::string indent(int columns) {
  return std::string(static_cast<std::size_t>(columns), ' ');
}

const char* severity_word(analyzers::Severity severity) {
  switch (severity) {
    case analyzers::Severity::error:
      return "error";
    case analyzers::Severity::warning:
      return "warning";
    case analyzers::Severity::info:
      return "note";
  }
  return "note";
}

Tone severity_tone(analyzers::Severity severity) {
  switch (severity) {
    case analyzers::Severity::error:
      return Tone::error;
    case analyzers::Severity::warning:
      return Tone::warning;
    case analyzers::Severity::info:
      return Tone::note;
  }
  return Tone::note;
}

std::string spell_steps(const analyzers::StepSpan& steps) {
  if (steps.count <= 0) return {};
  const bool without_gap = steps.count == steps.last - steps.first + 1;
  const std::string range = analyzers::step_range(steps.first, steps.last);
  return without_gap ? range : fmt::format("{} of {}", analyzers::count_of(steps.count), range);
}

/// A path as the user knows it: relative to where they started, and without the way to their installed packages.
std::string spell_place(const trace::SourceLine& source, const std::string& working_directory) {
  std::string text = place(source, working_directory);
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = text.rfind(folder);
    if (at != std::string::npos) text.erase(0, at + folder.size());
  }
  return printable(text);
}

class Block {
 public:
  Block(int width, const Painter& paint) : width_(width), paint_(paint) {}

  void line(const std::string& text) { out_ += text + "\n"; }

  /// `label` in its column and the text beside it, broken where it must.
  void row(std::string_view label, std::string_view text, Tone tone = Tone::plain) {
    std::string start = indent(label_column) + pad_right(label, text_column - label_column);
    for (const std::string& part : wrap(text, width_ - text_column)) {
      line(start + paint_(tone, part));
      start = indent(text_column);
    }
  }

  void where(const std::string& place, const std::optional<std::string>& text) {
    const std::string label = shorten_left(place, width_ - label_column);
    const std::string gap = "   ";
    const int column = std::max(text_column, label_column + display_width(label) + static_cast<int>(gap.size()));
    constexpr int least = 24;  // columns of source text that are worth standing beside the place
    if (!text) {
      line(indent(label_column) + paint_(Tone::strong, label));
    } else if (width_ - column >= std::min(least, display_width(*text))) {
      line(indent(label_column) + paint_(Tone::strong, label) + indent(column - label_column - display_width(label)) +
           shorten(*text, width_ - column));
    } else {
      line(indent(label_column) + paint_(Tone::strong, label));
      line(indent(text_column) + shorten(*text, width_ - text_column));
    }
  }

  void fix(std::string_view text, const std::string& explain) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string code = printable(text.substr(at, end - at));
      // Code keeps its indentation; only what is too long is broken at spaces.
      if (display_width(code) <= width_ - text_column) {
        lines.push_back(code);
      } else {
        for (const std::string& part : wrap(code, width_ - text_column))
          lines.push_back(part);
      }
      at = end + 1;
    }
    while (lines.size() > 1 && trim(lines.back()).empty())
      lines.pop_back();

    std::string start = indent(label_column) + pad_right("fix", text_column - label_column);
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
      line(start + paint_(Tone::fix, lines[i]));
      start = indent(text_column);
    }
    const std::string plain = start + lines.back();
    if (display_width(plain) + 2 + display_width(explain) <= width_) {
      line(start + paint_(Tone::fix, lines.back()) + spaces_between(plain, explain, width_) +
           paint_(Tone::faint, explain));
    } else {
      line(start + paint_(Tone::fix, lines.back()));
      line(indent(std::max(text_column, width_ - display_width(explain))) + paint_(Tone::faint, explain));
    }
  }

  std::string take() { return std::move(out_); }

 private:
  int width_;
  const Painter& paint_;
  std::string out_;
};

/// Label and text of the line that says where in the model, or an empty label where there is nothing to say.
std::pair<std::string, std::string> model_place(const analyzers::Culprit& culprit, bool has_source) {
  const std::string module = printable(culprit.module.value_or(""));
  const std::string parameter = printable(culprit.parameter.value_or(""));
  const std::string op = printable(culprit.op.value_or(""));
  if (module.empty() && parameter.empty() && has_source) return {};

  std::string label;
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    if (label.empty()) label = name;
    text += (text.empty() ? "" : " · ") + value;
  };
  add("parameter", parameter);
  // A parameter's name begins with its module's.
  if (parameter.empty() || !parameter.starts_with(module)) add("module", module);
  add("op", op);
  if (!text.empty() && culprit.phase) text += std::string(" · ") + analyzers::phase_name(*culprit.phase);
  return {label, text};
}

std::string spell_symptoms(const analyzers::Finding& finding) {
  std::string text;
  std::set<std::string> named;
  const auto add = [&](const std::string& code, const std::string& name) {
    if (!named.insert(code).second) return;
    text += (text.empty() ? "" : ", ") + printable(code) + (name.empty() ? "" : " " + printable(name));
  };
  for (const analyzers::Finding& symptom : finding.explained)
    add(symptom.rule, symptom.name);
  for (const std::string& code : finding.symptoms)
    add(code, "");
  return text;
}

}  // namespace

std::string finding_line(const analyzers::Finding& finding, const TerminalOptions& options, const Painter& paint) {
  const std::string severity = severity_word(finding.severity);
  const std::string rule = printable(finding.rule);
  const std::string steps = spell_steps(finding.steps);
  const int title_column = static_cast<int>(severity.size()) + 1 + display_width(rule) + 2;
  const int room = options.width - title_column - (steps.empty() ? 0 : display_width(steps) + 2);
  const std::vector<std::string> title = wrap(printable(finding.title), std::max(room, 20));

  std::string out = paint(severity_tone(finding.severity), severity) + " " + paint(Tone::strong, rule) + "  " +
                    paint(Tone::strong, title.front());
  if (!steps.empty()) {
    out += spaces_between(indent(title_column) + title.front(), steps, options.width) + paint(Tone::faint, steps);
  }
  out += '\n';
  for (std::size_t i = 1; i < title.size(); ++i)
    out += indent(title_column) + paint(Tone::strong, title[i]) + "\n";
  return out;
}

std::string finding_block(const analyzers::Finding& finding, const analyzers::RunSummary& run,
                          const TerminalOptions& options, const Painter& paint) {
  Block block(options.width, paint);

  const bool has_source = finding.culprit.source && finding.culprit.source->known();
  if (has_source) {
    block.where(spell_place(*finding.culprit.source, run.working_directory),
                options.read_source(*finding.culprit.source));
  }
  const auto [label, where] = model_place(finding.culprit, has_source);
  if (!label.empty()) block.row(label, where);

  std::string proof = printable(finding.proof.empty() ? finding.message : finding.proof);
  // Saying so saves the reader a day with the loss scale. Rules on constants that are lost say it in their own words.
  if (finding.same_in_fp32 && finding.rule.starts_with("AMP6")) proof += " · the same happens in fp32";
  if (!proof.empty()) block.row("", proof);

  std::string chain_label = "chain";
  for (const std::string& link : chain_lines(finding.chain, run.working_directory, options.width - text_column)) {
    block.line(indent(label_column) + pad_right(chain_label, text_column - label_column) + link);
    chain_label.clear();
  }
  if (const std::string symptoms = spell_symptoms(finding); !symptoms.empty()) {
    block.row("", "also seen, explained by this: " + symptoms, Tone::faint);
  }

  const bool cpp = run.language == "c++" && !finding.fix_cpp.empty();
  block.fix(cpp ? finding.fix_cpp : finding.fix, "ampscope explain " + printable(finding.rule));
  return finding_line(finding, options, paint) + block.take();
}

}  // namespace ampscope::reporters
