#include "reporters/terminal/chain_lines.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "reporters/common/place.h"
#include "reporters/common/text.h"
#include "reporters/terminal/layout.h"

namespace ampscope::reporters {
namespace {

constexpr std::size_t most_lines = 5;
enum Cell : std::size_t { op, module, source, dtype, range, note, cells };
using Row = std::array<std::string, cells>;

std::string spell_range(const analyzers::ChainLink& link) {
  std::string out = link.output_absmax ? analyzers::number(*link.output_absmax) : "";
  if (link.nonfinite > 0) out = analyzers::count_of(link.nonfinite) + " non-finite";
  if (!link.input_absmax) return out;
  return analyzers::number(*link.input_absmax) + (out.empty() ? "" : " → " + out);
}

Row make_row(const analyzers::ChainLink& link, const std::string& working_directory) {
  std::string_view name = link.op;
  if (name.starts_with("aten::")) name.remove_prefix(6);
  Row row;
  row[op] = printable(name);
  row[module] = printable(link.module);
  if (link.source) row[source] = printable(place(*link.source, working_directory));
  // The file's name is enough here: the finding names the whole path of its culprit.
  row[source] = row[source].substr(row[source].rfind('/') + 1);
  row[dtype] = link.dtype == trace::DType::unknown ? "" : trace::short_dtype_name(link.dtype);
  row[range] = spell_range(link);
  row[note] = printable(link.note);
  // "gradient … gradient, and 15 more" says it twice.
  if (const std::string twice = row[op] + ", "; row[note].starts_with(twice)) row[note].erase(0, twice.size());
  return row;
}

std::string join(const Row& row, const std::array<int, cells>& widths) {
  std::string line;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    if (widths[cell] > 0) line += pad_right(shorten_left(row[cell], widths[cell]), widths[cell]) + "  ";
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

int total(const std::array<int, cells>& widths) {
  int sum = 0;
  for (const int width : widths)
    sum += width > 0 ? width + 2 : 0;
  return sum - 2;
}

}  // namespace

std::vector<std::string> chain_lines(const std::vector<analyzers::ChainLink>& chain,
                                     const std::string& working_directory, int width) {
  std::vector<Row> rows;
  const std::size_t left_out = chain.size() > most_lines ? chain.size() - (most_lines - 1) : 0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const bool in_the_middle = left_out > 0 && i >= most_lines - 2 && i + 1 < chain.size();
    if (!in_the_middle) rows.push_back(make_row(chain[i], working_directory));
  }

  std::array<int, cells> widths{};
  for (const Row& row : rows) {
    for (std::size_t cell = 0; cell < cells; ++cell)
      widths[cell] = std::max(widths[cell], display_width(row[cell]));
  }
  // What does not fit goes in the order in which it is least missed.
  const auto shrink_module = [&](int shortest) {
    const int excess = total(widths) - width;
    if (excess > 0) widths[module] = std::min(widths[module], std::max(shortest, widths[module] - excess));
  };
  if (total(widths) > width) widths[source] = 0;
  shrink_module(12);
  if (total(widths) > width) widths[dtype] = 0;
  shrink_module(8);
  if (total(widths) > width) widths[module] = 0;

  std::vector<std::string> lines;
  for (const Row& row : rows) {
    if (left_out > 0 && lines.size() == most_lines - 2) {
      lines.push_back(fmt::format("… {} more, which pass it on", left_out));
    }
    lines.push_back(shorten(join(row, widths), width));
  }
  return lines;
}

}  // namespace ampscope::reporters
