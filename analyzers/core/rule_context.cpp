#include "analyzers/core/rule_context.h"

#include <algorithm>
#include <cmath>

namespace ampscope::analyzers {

namespace {

std::vector<SkipAnalysis> skips_of(const TraceView& view, const SkipLimits& limits) {
  std::vector<SkipAnalysis> result;
  for (const trace::Scaler& scaler : view.trace().scalers)
    result.push_back(analyze_skips(view, scaler.id, limits));
  return result;
}

std::vector<std::optional<Tuning>> tunings_of(const TraceView& view) {
  std::vector<std::optional<Tuning>> result;
  for (const trace::Scaler& scaler : view.trace().scalers)
    result.push_back(tune(view, scaler.id));
  return result;
}

}  // namespace

ProcessAnalysis::ProcessAnalysis(const trace::Trace& trace, const SkipLimits& limits)
    : view(trace), skips(skips_of(view, limits)), root_cause(find_root_cause(view, skips)), tunings(tunings_of(view)) {}

bool ProcessAnalysis::by_design(const Skip& skip) const noexcept {
  return skip.by_design() &&
         std::none_of(root_cause.origins.begin(), root_cause.origins.end(), [&](const Origin& origin) {
           return origin.steps.first <= skip.step && skip.step <= origin.steps.last;
         });
}

double parameter_value(const Rule& rule, std::string_view name, const ParameterValues& values) {
  const auto spec = std::find_if(rule.parameters.begin(), rule.parameters.end(),
                                 [&](const ParameterSpec& parameter) { return name == parameter.name; });
  if (spec == rule.parameters.end()) return std::nan("");
  const auto set = values.find(rule.code);
  if (set == values.end()) return spec->default_value;
  const auto value = set->second.find(std::string(name));
  if (value == set->second.end() || std::isnan(value->second)) return spec->default_value;
  return std::clamp(value->second, spec->minimum, spec->maximum);
}

double RuleContext::parameter(std::string_view name) const {
  return parameter_value(*rule_, name, *values_);
}

Finding RuleContext::finding() const {
  Finding finding;
  finding.rule = rule_->code;
  finding.name = rule_->name;
  finding.severity = rule_->severity;
  finding.precision_fault = rule_->precision_fault;
  finding.same_in_fp32 = rule_->family == Family::not_precision && !rule_->precision_fault;
  return finding;
}

Culprit RuleContext::culprit(std::int64_t site) const {
  Culprit culprit;
  const trace::Site* const found = view().site(site);
  if (found == nullptr) return culprit;
  culprit.op = found->name;
  culprit.phase = found->phase;
  culprit.module = view().module_of(site);
  if (const trace::SourceLine source = view().source_of(site); source.known()) culprit.source = source;
  culprit.site = site;
  return culprit;
}

}  // namespace ampscope::analyzers
