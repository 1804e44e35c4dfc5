#include "reporters/ci/sarif.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include <fmt/format.h>

#include "reporters/common/fingerprint.h"
#include "reporters/common/place.h"
#include "reporters/common/text.h"

namespace ampscope::reporters {
namespace {

using Json = nlohmann::ordered_json;

const char* sarif_level(analyzers::Severity severity) {
  switch (severity) {
    case analyzers::Severity::error:
      return "error";
    case analyzers::Severity::warning:
      return "warning";
    case analyzers::Severity::info:
      return "note";
  }
  return "none";
}

/// The path of a URI reference (RFC 3986, section 3.3): everything but unreserved characters and "/" as %XX.
std::string uri_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos);
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

Json artifact(const std::string& file, const std::string& working_directory) {
  const std::string path = relative_path(file, working_directory);
  if (path.starts_with('/')) return {{"uri", "file://" + uri_path(path)}};
  return {{"uri", uri_path(path)}, {"uriBaseId", "SRCROOT"}};
}

Json locations(const analyzers::Finding& finding, const std::string& working_directory) {
  Json location = Json::object();
  const analyzers::Culprit& culprit = finding.culprit;
  if (culprit.source && culprit.source->known()) {
    location["physicalLocation"] = {
        {"artifactLocation", artifact(culprit.source->file, working_directory)},
        {"region", {{"startLine", std::max(culprit.source->line, 1)}}},
    };
  }
  Json logical = Json::array();
  const auto add = [&](const std::optional<std::string>& name, const char* kind) {
    if (name && !name->empty()) logical.push_back({{"fullyQualifiedName", valid_utf8(*name)}, {"kind", kind}});
  };
  add(culprit.module, "module");
  add(culprit.parameter, "variable");
  add(culprit.op, "function");
  if (!logical.empty()) location["logicalLocations"] = std::move(logical);
  Json out = Json::array();
  if (!location.empty()) out.push_back(std::move(location));
  return out;
}

Json rule_json(const RuleEntry& rule) {
  return {
      {"id", rule.code},
      {"name", rule.name},
      {"shortDescription", {{"text", rule.summary}}},
      {"help", {{"text", "ampscope explain " + rule.code + " shows the page of this rule."}}},
      {"defaultConfiguration", {{"level", sarif_level(rule.severity)}}},
  };
}

}  // namespace

std::string render_sarif(const analyzers::Report& report, const std::vector<RuleEntry>& rules) {
  Json rule_list = Json::array();
  for (const RuleEntry& rule : rules)
    rule_list.push_back(rule_json(rule));

  Json results = Json::array();
  const std::vector<std::string> names = fingerprints(report);
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const analyzers::Finding& finding = report.findings[i];
    Json result = {
        {"ruleId", valid_utf8(finding.rule)},
        {"level", sarif_level(finding.severity)},
        {"message", {{"text", valid_utf8(finding.title + ". " + finding.message + "\nFix: " + finding.fix)}}},
        {"locations", locations(finding, report.run.working_directory)},
        {"partialFingerprints", {{"ampscope/v1", names[i]}}},
        {"properties",
         {{"firstStep", finding.steps.first},
          {"lastStep", finding.steps.last},
          {"precisionFault", finding.precision_fault}}},
    };
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const RuleEntry& r) { return r.code == finding.rule; });
    if (rule != rules.end()) result["ruleIndex"] = rule - rules.begin();
    results.push_back(std::move(result));
  }

  Json run = {
      {"tool", {{"driver", {{"name", "ampscope"}, {"version", AMPSCOPE_VERSION}, {"rules", std::move(rule_list)}}}}},
      {"columnKind", "unicodeCodePoints"},
      {"results", std::move(results)},
  };
  if (!report.run.working_directory.empty()) {
    run["originalUriBaseIds"] = {{"SRCROOT", {{"uri", "file://" + uri_path(report.run.working_directory) + "/"}}}};
  }
  Json runs = Json::array();
  runs.push_back(std::move(run));
  const Json sarif = {
      {"$schema", "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", std::move(runs)},
  };
  return sarif.dump(2) + "\n";
}

}  // namespace ampscope::reporters
