#include "reporters/ci/junit.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "reporters/common/place.h"
#include "reporters/common/text.h"

namespace ampscope::reporters {
namespace {

/// For attributes and text alike. Control characters have no spelling in XML 1.0 (section 2.2), so printable() first.
std::string xml(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string describe(const analyzers::Finding& finding, const analyzers::RunSummary& run) {
  std::string out = finding.title + "\n";
  if (finding.culprit.source && finding.culprit.source->known()) {
    out += place(*finding.culprit.source, run.working_directory) + "\n";
  }
  if (finding.culprit.module && !finding.culprit.module->empty()) out += "module " + *finding.culprit.module + "\n";
  out += fmt::format("steps {} to {}\n{}\nfix: {}\n", finding.steps.first, finding.steps.last, finding.message,
                     finding.fix);
  return out;
}

/// Text of several lines; xml() would join them.
std::string xml_lines(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += xml(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return out;
}

}  // namespace

std::string render_junit(const analyzers::Report& report, const std::vector<RuleEntry>& rules) {
  std::string cases;
  int failures = 0;
  int skipped = 0;
  for (const RuleEntry& rule : rules) {
    std::string body;
    bool failed = false;
    for (const analyzers::Finding& finding : report.findings) {
      if (finding.rule != rule.code) continue;
      const std::string text = xml_lines(describe(finding, report.run));
      if (finding.severity == analyzers::Severity::info) {
        body += "      <system-out>" + text + "</system-out>\n";
      } else {
        failed = true;
        body += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                            analyzers::severity_name(finding.severity), xml(finding.title), text);
      }
    }
    const auto missing = std::find_if(report.not_evaluated.begin(), report.not_evaluated.end(),
                                      [&](const analyzers::NotEvaluated& entry) { return entry.rule == rule.code; });
    if (body.empty() && missing != report.not_evaluated.end()) {
      ++skipped;
      body = "      <skipped message=\"needs " + xml(missing->needs) + "\"/>\n";
    }
    failures += failed ? 1 : 0;
    const std::string start =
        fmt::format("    <testcase classname=\"ampscope.{}\" name=\"{}\"", xml(rule.code), xml(rule.name));
    cases += body.empty() ? fmt::format("{}/>\n", start) : fmt::format("{}>\n{}    </testcase>\n", start, body);
  }
  const std::string counts =
      fmt::format("name=\"ampscope\" tests=\"{}\" failures=\"{}\" errors=\"0\"", rules.size(), failures);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite {0} skipped=\"{1}\">\n{2}  "
      "</testsuite>\n</testsuites>\n",
      counts, skipped, cases);
}

}  // namespace ampscope::reporters
