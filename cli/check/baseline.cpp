#include "cli/check/baseline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/app/error.h"
#include "reporters/common/fingerprint.h"
#include "reporters/common/place.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

constexpr const char* schema = "ampscope.baseline/1";

analyzers::Verdict verdict_of(const std::vector<analyzers::Finding>& findings) {
  analyzers::Verdict verdict = analyzers::Verdict::clean;
  for (const analyzers::Finding& finding : findings) {
    const auto severity = static_cast<analyzers::Verdict>(static_cast<int>(finding.severity) + 1);
    verdict = std::max(verdict, severity);
  }
  return verdict;
}

}  // namespace

std::string make_baseline(const analyzers::Report& report) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  const std::vector<std::string> names = reporters::fingerprints(report);
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const analyzers::Finding& finding = report.findings[i];
    const std::string source =
        finding.culprit.source ? reporters::place(*finding.culprit.source, report.run.working_directory) : "";
    findings.push_back({{"fingerprint", names[i]},
                        {"rule", reporters::valid_utf8(finding.rule)},
                        {"source", reporters::valid_utf8(source)},
                        {"title", reporters::valid_utf8(finding.title)}});
  }
  const nlohmann::ordered_json baseline = {{"schema", schema}, {"findings", std::move(findings)}};
  return baseline.dump(2) + "\n";
}

BaselineResult apply_baseline(const std::string& baseline, const std::string& path, analyzers::Report& report) {
  const auto document = nlohmann::json::parse(baseline, nullptr, false);
  const bool shaped = document.is_object() && document.contains("findings") && document["findings"].is_array();
  if (!shaped || document.value("schema", nlohmann::json()) != schema) {
    throw UserError(fmt::format("{} is no baseline of this version of ampscope; write it anew with --write-baseline",
                                reporters::printable(path)));
  }
  std::set<std::string> known;
  for (const auto& entry : document["findings"]) {
    if (entry.is_object() && entry.contains("fingerprint") && entry["fingerprint"].is_string()) {
      known.insert(entry["fingerprint"].get<std::string>());
    }
  }

  BaselineResult result;
  const std::vector<std::string> names = reporters::fingerprints(report);
  std::vector<analyzers::Finding> unknown;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (known.erase(names[i]) > 0) {
      ++result.known;
    } else {
      unknown.push_back(std::move(report.findings[i]));
    }
  }
  result.gone = static_cast<std::int64_t>(known.size());
  report.findings = std::move(unknown);
  report.verdict = verdict_of(report.findings);
  return result;
}

}  // namespace ampscope::cli
