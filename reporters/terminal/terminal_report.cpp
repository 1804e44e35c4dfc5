#include "reporters/terminal/terminal_report.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "reporters/common/numbers.h"
#include "reporters/common/text.h"
#include "reporters/terminal/finding_block.h"
#include "reporters/terminal/layout.h"
#include "reporters/terminal/paint.h"
#include "reporters/terminal/rounding_lines.h"
#include "reporters/terminal/source_text.h"

namespace ampscope::reporters {
namespace {

constexpr std::size_t most_findings = 5;

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

/// `text` after `start`, its further lines under it.
std::string hanging(const std::string& start, int start_width, const std::string& text, int width) {
  std::string out;
  for (const std::string& line : wrap(text, width - start_width)) {
    out += (out.empty() ? start : std::string(static_cast<std::size_t>(start_width), ' ')) + line + "\n";
  }
  return out;
}

std::string header(const analyzers::Report& report, const TerminalOptions& options, const Painter& paint) {
  const analyzers::RunSummary& run = report.run;
  std::vector<std::string> parts;
  parts.push_back(analyzers::plural(run.steps, "step"));
  if (!run.skipped_steps.empty()) {
    parts.back() +=
        fmt::format(", {} skipped", analyzers::count_of(static_cast<std::int64_t>(run.skipped_steps.size())));
  }
  if (run.ranks > 1) parts.push_back(analyzers::plural(run.ranks, "rank"));
  std::string how = printable(run.precision);
  if (!run.device.empty()) how += (how.empty() ? "on " : " on ") + printable(run.device);
  if (!how.empty()) parts.push_back(how);
  if (!report.scalers.empty() && !report.scalers.front().timeline.empty()) {
    const auto& timeline = report.scalers.front().timeline;
    const std::string first = spell_scale(timeline.front().scale);
    const std::string last = spell_scale(timeline.back().scale_after);
    parts.push_back("loss scale " + first + (first == last ? "" : " → " + last));
  }
  if (run.budget && run.budget->cost_percent) {
    parts.push_back(
        fmt::format("cost {:.2g} % of a budget of {:.3g} %", *run.budget->cost_percent, run.budget->percent));
  } else if (run.overhead_ratio) {
    parts.push_back(fmt::format("cost {:.2f}×", *run.overhead_ratio));
  }
  if (run.exit_status && *run.exit_status != 0) parts.push_back(fmt::format("exit status {}", *run.exit_status));
  return hanging(paint(Tone::strong, "ampscope") + "  ", 10, joined(parts, " · "), options.width);
}

bool fires(const analyzers::Report& report, std::string_view rule) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const analyzers::Finding& finding) { return finding.rule == rule; });
}

/// What silence does not cover. Empty when everything was looked at.
std::vector<std::string> blind_spots(const analyzers::Report& report) {
  std::vector<std::string> spots;
  const analyzers::RunSummary& run = report.run;
  if (!run.switched_off_because.empty()) {
    spots.push_back("the recorder switched itself off: " + printable(run.switched_off_because));
  }
  if (run.damaged) spots.emplace_back("part of the trace could not be read (ampscope info says what)");
  if (run.events_dropped > 0 && !fires(report, "AMP902")) {
    spots.push_back(analyzers::plural(run.events_dropped, "event") + " that the recorder had to drop");
  }
  if (run.budget && run.budget->operator_steps < run.steps) {
    spots.push_back(fmt::format("operators in {} of {} (the budget draws steps); gradients were checked in all",
                                analyzers::count_of(run.steps - run.budget->operator_steps),
                                analyzers::plural(run.steps, "step")));
  }
  if (!fires(report, "AMP901")) {
    std::map<std::string, double> shares;
    for (const analyzers::HiddenRow& region : report.hidden)
      shares[region.kind] += region.time_share;
    for (const auto& [kind, share] : shares) {
      spots.push_back(fmt::format("{} of the time, inside {}", analyzers::share(share), printable(kind)));
    }
  }
  std::map<std::string, std::vector<std::string>> rules_by_need;
  for (const analyzers::NotEvaluated& rule : report.not_evaluated)
    rules_by_need[rule.needs].push_back(rule.rule);
  for (const auto& [needs, rules] : rules_by_need) {
    constexpr std::size_t few = 4;
    const std::string which = rules.size() <= few ? printable(joined(rules, ", "))
                                                  : analyzers::plural(static_cast<std::int64_t>(rules.size()), "rule");
    spots.push_back(fmt::format("{}: {} {}", which, rules.size() == 1 ? "needs" : "need", printable(needs)));
  }
  return spots;
}

std::string not_looked_at(const analyzers::Report& report, const TerminalOptions& options, const Painter& paint) {
  const std::string label = "not looked at: ";
  std::string out;
  for (const std::string& spot : blind_spots(report)) {
    const auto width = static_cast<int>(label.size());
    out +=
        hanging(out.empty() ? paint(Tone::faint, label) : std::string(label.size(), ' '), width, spot, options.width);
  }
  return out;
}

std::string healthy(const analyzers::Report& report, const TerminalOptions& options, const Painter& paint) {
  const analyzers::RunSummary& run = report.run;
  if (run.steps == 0 && run.ended == "exception") {
    return hanging(paint(Tone::warning, "nothing to judge: "), 18,
                   "the program ended by an exception before its first step was finished, and no rule knows this one",
                   options.width);
  }
  if (run.steps == 0) {
    return hanging(paint(Tone::warning, "nothing to judge: "), 18,
                   "the trace holds no finished training step, so no rule could be applied. A loop without backward() "
                   "and optimizer marks its steps itself: ampscope.step()",
                   options.width);
  }
  return hanging(
      paint(Tone::fix, "clean: "), 7,
      joined({analyzers::plural(run.steps, "step"), analyzers::plural(run.ops, "op"),
              analyzers::plural(run.parameters, "parameter") + " watched", analyzers::plural(run.rules, "rule")},
             ", "),
      options.width);
}

struct Counts {
  std::int64_t errors = 0;
  std::int64_t warnings = 0;
  std::int64_t notes = 0;
};

Counts count(const std::vector<analyzers::Finding>& findings) {
  Counts counts;
  for (const analyzers::Finding& finding : findings) {
    switch (finding.severity) {
      case analyzers::Severity::error:
        ++counts.errors;
        break;
      case analyzers::Severity::warning:
        ++counts.warnings;
        break;
      case analyzers::Severity::info:
        ++counts.notes;
        break;
    }
  }
  return counts;
}

std::string findings_in_full(const analyzers::Report& report, const TerminalOptions& options, const Painter& paint) {
  std::string out;
  std::size_t shown = 0;
  std::size_t left_out = 0;
  for (const analyzers::Finding& finding : report.findings) {
    // Notes are for calm runs: beside a fault they would only be in the way.
    if (!options.all && finding.severity == analyzers::Severity::info) continue;
    if (!options.all && shown == most_findings) {
      ++left_out;
      continue;
    }
    out += finding_block(finding, report.run, options, paint) + "\n";
    ++shown;
  }
  if (left_out > 0) {
    const std::string more = analyzers::plural(static_cast<std::int64_t>(left_out), "more finding");
    out += hanging(more + ": ", display_width(more) + 2, options.show_all, options.width) + "\n";
  }
  return out;
}

}  // namespace

std::string render_terminal(const analyzers::Report& report, const TerminalOptions& given) {
  TerminalOptions options = given;
  constexpr int narrowest = 40;
  options.width = std::max(options.width, narrowest);
  if (!options.read_source) {
    options.read_source = [&](const trace::SourceLine& source) {
      return read_source_text(source, report.run.start_time_ns);
    };
  }
  const Painter paint(options.colour);
  const Counts counts = count(report.findings);

  std::string out = header(report, options, paint) + "\n";
  if (counts.errors + counts.warnings > 0) {
    out += findings_in_full(report, options, paint);
    out += not_looked_at(report, options, paint);
    out += paint(counts.errors > 0 ? Tone::error : Tone::plain, analyzers::plural(counts.errors, "error")) + " · " +
           paint(counts.warnings > 0 ? Tone::warning : Tone::plain, analyzers::plural(counts.warnings, "warning")) +
           " · " + analyzers::plural(counts.notes, "note") + "\n";
  } else {
    out += healthy(report, options, paint);
    out += not_looked_at(report, options, paint);
    for (const analyzers::Finding& finding : report.findings) {
      out += options.all ? "\n" + finding_block(finding, report.run, options, paint)
                         : finding_line(finding, options, paint);
    }
  }
  out += rounding_lines(report, options.all, options.width, paint);
  if (!options.next.empty()) out += "next: " + paint(Tone::strong, printable(options.next)) + "\n";
  return out;
}

}  // namespace ampscope::reporters
