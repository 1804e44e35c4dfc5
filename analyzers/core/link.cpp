#include "analyzers/core/link.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "analyzers/core/registry.h"

namespace ampscope::analyzers {

namespace {

bool same_source(const Culprit& a, const Culprit& b) {
  if (a.source.has_value() != b.source.has_value()) return false;
  return !a.source || (a.source->file == b.source->file && a.source->line == b.source->line);
}

bool same_place(const Finding& a, const Finding& b) {
  return a.rule == b.rule && a.culprit.op == b.culprit.op && a.culprit.module == b.culprit.module &&
         a.culprit.parameter == b.culprit.parameter && same_source(a.culprit, b.culprit);
}

bool share_process(const Draft& a, const Draft& b) {
  return std::any_of(a.processes.begin(), a.processes.end(), [&](std::size_t process) {
    return std::find(b.processes.begin(), b.processes.end(), process) != b.processes.end();
  });
}

bool overlap(const StepSpan& a, const StepSpan& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Whether findings of `rule` can be explained by those of `code`.
bool names(const Rule& rule, std::string_view code) {
  return std::any_of(rule.symptom_of.begin(), rule.symptom_of.end(),
                     [&](std::string_view cause) { return code.starts_with(cause); });
}

/// Whether the finding is about what an optimizer does, as its own code shows it.
bool of_optimizer(const Finding& finding) {
  return finding.culprit.phase == trace::Phase::optimizer && finding.chain.empty();
}

/// Whether the finding is about the birth of a value in the pass, and not about what an optimizer does afterwards or
/// has left in a weight.
bool born_in_pass(const Finding& finding) {
  return !finding.chain.empty() && finding.culprit.phase != trace::Phase::optimizer && !finding.culprit.parameter;
}

/// What an optimizer does in a step shows in the pass of the next one; what is born in the pass is there when the
/// optimizer comes.
bool in_time(const Finding& cause, const Finding& symptom) {
  if (of_optimizer(cause) && born_in_pass(symptom)) return cause.steps.first < symptom.steps.first;
  // Of what is born inside an optimizer's step, the optimizer's own finding knows more: where each could explain the
  // other, it is the cause.
  const bool inside_step = !cause.chain.empty() && !born_in_pass(cause);
  const Rule* const rule = find_rule(cause.rule);
  const bool mutual = rule != nullptr && names(*rule, symptom.rule);
  return !(of_optimizer(symptom) && inside_step && mutual);
}

bool explains(const Draft& cause, const Draft& symptom) {
  const Rule* const rule = find_rule(symptom.finding.rule);
  if (rule == nullptr || cause.finding.rule == symptom.finding.rule) return false;
  const bool named = names(*rule, cause.finding.rule);
  // A note never explains a fault.
  if (!named || cause.finding.severity == Severity::info) return false;
  return share_process(cause, symptom) && overlap(cause.finding.steps, symptom.finding.steps) &&
         in_time(cause.finding, symptom.finding);
}

bool better_cause(const Finding& a, const Finding& b) {
  if (a.steps.first != b.steps.first) return a.steps.first < b.steps.first;
  if (a.severity != b.severity) return a.severity > b.severity;
  return a.rule < b.rule;
}

void adopt(Finding& cause, Finding symptom) {
  cause.severity = std::max(cause.severity, symptom.severity);
  std::vector<Finding> inner = std::move(symptom.explained);
  symptom.explained.clear();
  symptom.symptoms.clear();
  if (std::find(cause.symptoms.begin(), cause.symptoms.end(), symptom.rule) == cause.symptoms.end()) {
    cause.symptoms.push_back(symptom.rule);
  }
  cause.explained.push_back(std::move(symptom));
  for (Finding& finding : inner)
    adopt(cause, std::move(finding));
}

}  // namespace

void merge_equal(std::vector<Draft>& drafts) {
  std::vector<Draft> merged;
  for (Draft& draft : drafts) {
    const auto known = std::find_if(merged.begin(), merged.end(),
                                    [&](const Draft& other) { return same_place(other.finding, draft.finding); });
    if (known == merged.end()) {
      merged.push_back(std::move(draft));
      continue;
    }
    Finding& finding = known->finding;
    finding.severity = std::max(finding.severity, draft.finding.severity);
    finding.steps.count = std::max(finding.steps.count, draft.finding.steps.count);
    finding.steps.first = std::min(finding.steps.first, draft.finding.steps.first);
    finding.steps.last = std::max(finding.steps.last, draft.finding.steps.last);
    for (const std::size_t process : draft.processes) {
      if (std::find(known->processes.begin(), known->processes.end(), process) == known->processes.end()) {
        known->processes.push_back(process);
      }
    }
  }
  drafts = std::move(merged);
}

void link_symptoms(std::vector<Draft>& drafts) {
  std::vector<std::optional<std::size_t>> cause_of(drafts.size());
  for (std::size_t symptom = 0; symptom < drafts.size(); ++symptom) {
    for (std::size_t cause = 0; cause < drafts.size(); ++cause) {
      if (cause == symptom || !explains(drafts[cause], drafts[symptom])) continue;
      // Two rules may name each other; the first link made stands.
      bool circular = false;
      for (std::optional<std::size_t> at = cause; at; at = cause_of[*at])
        circular = circular || *at == symptom;
      if (circular) continue;
      if (!cause_of[symptom] || better_cause(drafts[cause].finding, drafts[*cause_of[symptom]].finding)) {
        cause_of[symptom] = cause;
      }
    }
  }
  std::vector<Draft> roots;
  std::vector<std::size_t> root_at(drafts.size(), 0);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (cause_of[i]) continue;
    root_at[i] = roots.size();
    roots.push_back(std::move(drafts[i]));
  }
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (!cause_of[i]) continue;
    std::size_t root = i;
    while (const std::optional<std::size_t> cause = cause_of[root])
      root = *cause;
    adopt(roots[root_at[root]].finding, std::move(drafts[i].finding));
  }
  drafts = std::move(roots);
}

}  // namespace ampscope::analyzers
