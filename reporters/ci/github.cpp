#include "reporters/ci/github.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "reporters/common/place.h"
#include "reporters/common/text.h"

namespace ampscope::reporters {
namespace {

/// The runner reads commands line by line, so a line break in a name would begin a command of its own.
std::string escape(std::string_view text, bool property) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

const char* command(analyzers::Severity severity) {
  switch (severity) {
    case analyzers::Severity::error:
      return "error";
    case analyzers::Severity::warning:
      return "warning";
    case analyzers::Severity::info:
      return "notice";
  }
  return "notice";
}

}  // namespace

std::string render_github(const analyzers::Report& report) {
  std::string out;
  for (const analyzers::Finding& finding : report.findings) {
    out += fmt::format("::{} ", command(finding.severity));
    if (finding.culprit.source && finding.culprit.source->known()) {
      out += fmt::format("file={},line={},",
                         escape(relative_path(finding.culprit.source->file, report.run.working_directory), true),
                         std::max(finding.culprit.source->line, 1));
    }
    out += fmt::format("title={}::{}\n", escape(finding.rule + " " + finding.name, true),
                       escape(finding.title + ". " + finding.message + "\nFix: " + finding.fix, false));
  }
  return out;
}

}  // namespace ampscope::reporters
