#include "reporters/terminal/rounding_lines.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "reporters/common/text.h"
#include "reporters/terminal/layout.h"

namespace ampscope::reporters {
namespace {

constexpr std::size_t most_rows = 5;

std::string place_of(const analyzers::OpRow& op) {
  std::string place = printable(op.op) + " (" + printable(op.phase) + ")";
  if (!op.module.empty()) place += " in " + printable(op.module);
  if (!op.source.empty()) place += ", " + printable(op.source);
  return place;
}

}  // namespace

std::string rounding_lines(const analyzers::Report& report, bool all, int width, const Painter& paint) {
  std::vector<const analyzers::OpRow*> compared;
  for (const analyzers::OpRow& op : report.ops) {
    if (op.rounding) compared.push_back(&op);
  }
  if (compared.empty()) return {};
  std::stable_sort(compared.begin(), compared.end(), [](const analyzers::OpRow* a, const analyzers::OpRow* b) {
    return a->rounding->relative_error > b->rounding->relative_error;
  });
  const std::size_t shown = all ? compared.size() : std::min(compared.size(), most_rows);
  std::string out;
  const std::string title =
      fmt::format("rounding: {} compared with higher precision on the same inputs, the worst first",
                  analyzers::plural(static_cast<std::int64_t>(compared.size()), "op"));
  for (const std::string& line : wrap(title, width))
    out += paint(Tone::faint, line) + "\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const analyzers::OpRow& op = *compared[i];
    const analyzers::RoundingSummary& rounding = *op.rounding;
    std::string text = fmt::format("{}: {} against {}, relative error {:.2g}; mean {} ulp, largest {} ulp",
                                   place_of(op), rounding.dtype, rounding.reference, rounding.relative_error,
                                   analyzers::number(rounding.mean_ulp), analyzers::number(rounding.max_ulp));
    if (rounding.max_ulp > 1) {
      text += fmt::format(" ({:.6g} for {:.6g})", rounding.worst_value, rounding.worst_reference);
    }
    if (rounding.overflowed > 0) {
      text += fmt::format("; {} beyond its range", analyzers::plural(rounding.overflowed, "element"));
    }
    bool first = true;
    for (const std::string& line : wrap(text, width - 4)) {
      out += (first ? "  " : "    ") + line + "\n";
      first = false;
    }
  }
  return out;
}

}  // namespace ampscope::reporters
