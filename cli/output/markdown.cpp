#include "cli/output/markdown.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reporters/common/text.h"
#include "reporters/terminal/layout.h"
#include "reporters/terminal/paint.h"

namespace ampscope::cli {
namespace {

using reporters::Painter;
using reporters::Tone;
using reporters::trim;

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// A piece of a paragraph that has one tone.
struct Span {
  std::string text;
  Tone tone = Tone::plain;
};

/// Takes `code`, **strong**, *emphasis* and [links](targets) apart.
std::vector<Span> spans(std::string_view text) {
  std::vector<Span> out;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) out.push_back({std::move(plain), Tone::plain});
    plain.clear();
  };
  /// The text between `mark` at the front and its next occurrence; nothing when there is none or it would be empty.
  const auto enclosed = [&](std::string_view mark) -> std::string_view {
    if (!text.starts_with(mark)) return {};
    const std::size_t end = text.find(mark, mark.size());
    if (end == std::string_view::npos || end == mark.size()) return {};
    const std::string_view inside = text.substr(mark.size(), end - mark.size());
    // "2 * 3 * 4" is no emphasis.
    return inside.front() == ' ' || inside.back() == ' ' ? std::string_view() : inside;
  };
  while (!text.empty()) {
    // Code ends at as many backticks as it began with, so that it can hold fewer; one space of padding is no part of
    // it.
    const std::size_t ticks = std::min(text.find_first_not_of('`'), text.size());
    const std::size_t end_of_code = ticks == 0 ? text.npos : text.find(std::string(ticks, '`'), ticks);
    if (end_of_code != text.npos) {
      std::string_view code = text.substr(ticks, end_of_code - ticks);
      if (code.size() > 2 && code.front() == ' ' && code.back() == ' ') code = code.substr(1, code.size() - 2);
      flush();
      out.push_back({std::string(code), Tone::note});
      text.remove_prefix(end_of_code + ticks);
      continue;
    }
    bool taken = false;
    for (const std::string_view mark : {"**", "*"}) {
      const std::string_view inside = enclosed(mark);
      if (inside.empty()) continue;
      flush();
      out.push_back({std::string(inside), Tone::strong});
      text.remove_prefix(inside.size() + 2 * mark.size());
      taken = true;
      break;
    }
    if (taken) continue;
    if (text.front() == '[') {
      const std::size_t middle = text.find("](");
      const std::size_t end = middle == std::string_view::npos ? middle : text.find(')', middle);
      if (end != std::string_view::npos && text.find('\n') >= end) {
        plain += text.substr(1, middle - 1);
        const std::string_view target = text.substr(middle + 2, end - middle - 2);
        // Other pages are found by their code; only addresses on the web are worth reading out.
        if (target.starts_with("http")) plain += " (" + std::string(target) + ")";
        text.remove_prefix(end + 1);
        continue;
      }
    }
    plain += text.front();
    text.remove_prefix(1);
  }
  flush();
  return out;
}

class Page {
 public:
  Page(int width, bool colour) : width_(width), paint_(colour) {}

  void paragraph(std::string_view text, int first_indent, int indent, std::string_view bullet = "") {
    struct Word {
      std::string text;
      Tone tone;
      bool glued;  ///< no space before it
    };
    std::vector<Word> words;
    bool space = true;
    for (const Span& span : spans(text)) {
      std::string_view rest = span.text;
      while (!rest.empty()) {
        const std::size_t skip = std::min(rest.find_first_not_of(" \n"), rest.size());
        space = space || skip > 0;
        rest.remove_prefix(skip);
        if (rest.empty()) break;
        const std::size_t end = std::min(rest.find_first_of(" \n"), rest.size());
        words.push_back({reporters::printable(rest.substr(0, end)), span.tone, !space});
        space = false;
        rest.remove_prefix(end);
      }
    }

    std::string line = std::string(static_cast<std::size_t>(first_indent), ' ') + std::string(bullet);
    int column = reporters::display_width(line);
    bool empty = true;
    for (std::size_t i = 0; i < words.size();) {
      // Words without a space between them break together or not at all.
      std::size_t end = i + 1;
      int needed = reporters::display_width(words[i].text);
      for (; end < words.size() && words[end].glued; ++end)
        needed += reporters::display_width(words[end].text);
      if (!empty && column + 1 + needed > width_) {
        out_ += line + "\n";
        line.assign(static_cast<std::size_t>(indent), ' ');
        column = indent;
        empty = true;
      }
      if (!empty) {
        line += ' ';
        ++column;
      }
      for (; i < end; ++i)
        line += paint_(words[i].tone, words[i].text);
      column += needed;
      empty = false;
    }
    out_ += line + "\n";
  }

  void heading(std::string_view text) { out_ += paint_(Tone::strong, reporters::printable(text)) + "\n"; }
  void code(std::string_view text) { out_ += "    " + paint_(Tone::fix, reporters::printable(text)) + "\n"; }
  void verbatim(std::string_view text) { out_ += "  " + reporters::printable(text) + "\n"; }

  void gap() {
    if (!out_.empty() && !out_.ends_with("\n\n")) out_ += '\n';
  }

  std::string take() {
    while (out_.ends_with("\n\n"))
      out_.pop_back();
    return std::move(out_);
  }

 private:
  int width_;
  Painter paint_;
  std::string out_;
};

/// Columns of the marker that begins a list item ("- ", "12. "), 0 for other lines.
std::size_t marker_length(std::string_view line) {
  if (line.starts_with("- ") || line.starts_with("* ")) return 2;
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  return digits > 0 && line.substr(digits).starts_with(". ") ? digits + 2 : 0;
}

bool begins_block(std::string_view line) {
  const std::string_view text = trim(line);
  return text.empty() || text.starts_with('#') || text.starts_with("```") || text.starts_with('|') ||
         text.starts_with('>') || marker_length(text) > 0;
}

/// The line at `at` and those that continue it.
std::string joined(const std::vector<std::string_view>& lines, std::size_t& at) {
  std::string text(trim(lines[at++]));
  while (at < lines.size() && !begins_block(lines[at]))
    text += " " + std::string(trim(lines[at++]));
  return text;
}

}  // namespace

std::string render_markdown(std::string_view text, int width, bool colour) {
  Page page(width, colour);
  const std::vector<std::string_view> lines = split_lines(text);
  for (std::size_t at = 0; at < lines.size();) {
    const std::string_view line = trim(lines[at]);
    const auto indent = static_cast<int>(std::min(lines[at].find_first_not_of(' '), lines[at].size()));
    if (line.empty()) {
      page.gap();
      ++at;
    } else if (line.starts_with('#')) {
      page.gap();
      page.heading(trim(line.substr(std::min(line.find_first_not_of('#'), line.size()))));
      ++at;
    } else if (line.starts_with("```")) {
      for (++at; at < lines.size() && !trim(lines[at]).starts_with("```"); ++at)
        page.code(lines[at]);
      ++at;
    } else if (line.starts_with('|')) {
      page.verbatim(line);
      ++at;
    } else if (line.starts_with('>')) {
      page.paragraph(trim(line.substr(1)), 2, 2);
      ++at;
    } else if (const std::size_t marker = marker_length(line); marker > 0) {
      const std::string item = joined(lines, at);
      const std::string bullet = item[0] == '*' ? "- " : item.substr(0, marker);
      page.paragraph(std::string_view(item).substr(marker), indent, indent + static_cast<int>(marker), bullet);
    } else {
      page.paragraph(joined(lines, at), 0, 0);
    }
  }
  return page.take();
}

}  // namespace ampscope::cli
