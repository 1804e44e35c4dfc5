#include "analyzers/core/engine.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <string_view>

#include <fmt/format.h>

#include "analyzers/core/exchange.h"
#include "analyzers/core/link.h"
#include "analyzers/core/registry.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/core/tables.h"
#include "analyzers/rootcause/unreached.h"

namespace ampscope::analyzers {

namespace {

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

bool matches(const Rule& rule, std::string_view pattern) {
  return pattern == rule.name || std::string_view(rule.code).starts_with(upper(pattern));
}

bool listed(const Rule& rule, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return !pattern.empty() && matches(rule, pattern); });
}

bool chosen(const Rule& rule, const AnalysisOptions& options) {
  return (options.select.empty() || listed(rule, options.select)) && !listed(rule, options.ignore);
}

bool recorded(const trace::Trace& trace, Stream stream) {
  using trace::Level;
  switch (stream) {
    case Stream::protocol:
      return !trace.step_runs.empty();
    case Stream::ops:
      return !trace.sites.empty();
    case Stream::gradients:
      return trace.run.level != Level::ops || !trace.gradients.empty();
    case Stream::sentinel:
      return trace.run.level >= Level::automatic || !trace.nonfinite_events.empty() ||
             std::any_of(trace.totals.begin(), trace.totals.end(), [](const auto& t) { return t.checked_calls != 0; });
    case Stream::numerics:
      return trace.run.level >= Level::automatic || !trace.numerics.empty();
  }
  return false;
}

/// The first stream that a rule needs and a trace lacks; empty when it has all.
std::optional<Stream> missing(const Rule& rule, const trace::Trace& trace) {
  const auto found =
      std::find_if(rule.needs.begin(), rule.needs.end(), [&](Stream need) { return !recorded(trace, need); });
  return found != rule.needs.end() ? std::optional(*found) : std::nullopt;
}

SkipLimits skip_limits(const ParameterValues& values) {
  SkipLimits limits;
  const Rule* const rule = find_rule("AMP302");
  if (rule == nullptr) return limits;
  limits.settled_after = static_cast<std::int64_t>(parameter_value(*rule, "settled_after", values));
  limits.min_skips = static_cast<std::int64_t>(parameter_value(*rule, "min_skips", values));
  limits.min_fall = parameter_value(*rule, "min_fall", values);
  return limits;
}

std::vector<const trace::Trace*> by_rank(const std::vector<trace::Trace>& traces) {
  std::vector<const trace::Trace*> ordered;
  ordered.reserve(traces.size());
  for (const trace::Trace& trace : traces)
    ordered.push_back(&trace);
  std::stable_sort(ordered.begin(), ordered.end(), [](const trace::Trace* a, const trace::Trace* b) {
    const bool a_ranked = a->run.rank != trace::none;
    const bool b_ranked = b->run.rank != trace::none;
    if (a_ranked != b_ranked) return a_ranked;
    return a->run.rank < b->run.rank;
  });
  return ordered;
}

class Evaluation {
 public:
  Evaluation(const std::deque<ProcessAnalysis>& processes, const AnalysisOptions& options, Report& report)
      : processes_(processes), options_(options), report_(report) {
    for (const Rule* rule : all_rules()) {
      if (chosen(*rule, options)) rules_.push_back(rule);
    }
  }

  std::vector<Draft> run() {
    for (const Rule* rule : rules_)
      evaluate(*rule);
    for (std::size_t process = 0; process < processes_.size(); ++process) {
      for (const Origin& origin : processes_[process].root_cause.origins)
        explain(process, origin);
      explain_unreached(process);
    }
    return std::move(drafts_);
  }

 private:
  [[nodiscard]] RuleContext context(const Rule& rule, std::size_t process) const {
    return {rule, processes_[process], processes_, options_.parameters};
  }

  void evaluate(const Rule& rule) {
    bool evaluated = false;
    std::optional<Stream> lacking;
    for (std::size_t process = 0; process < processes_.size(); ++process) {
      if (const auto lack = missing(rule, processes_[process].view.trace()); lack) {
        lacking = lack;
        continue;
      }
      evaluated = true;
      if (rule.evaluate == nullptr) continue;
      std::vector<Finding> findings;
      rule.evaluate(context(rule, process), findings);
      add(std::move(findings), {process});
    }
    if (!evaluated) {
      report_.not_evaluated.push_back({rule.code, rule.name, lacking ? stream_need(*lacking) : ""});
      return;
    }
    ++evaluated_;
    report_.run.rules = evaluated_;
    if (rule.evaluate_run == nullptr) return;
    std::vector<Finding> findings;
    rule.evaluate_run(context(rule, 0), findings);
    std::vector<std::size_t> all(processes_.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = i;
    add(std::move(findings), all);
  }

  struct Winner {
    const Rule* rule = nullptr;
    Claim claim = Claim::none;
  };

  [[nodiscard]] Winner winner(std::size_t process, const Origin& origin) const {
    Winner best;
    for (const Rule* rule : rules_) {
      if (rule->claim == nullptr || missing(*rule, processes_[process].view.trace())) continue;
      const Claim made = rule->claim(context(*rule, process), origin);
      if (made > best.claim) best = {rule, made};
    }
    return best;
  }

  /// A metric that overflows fp16 does not disturb training, and is wrong all the same. Only what was proven, and what
  /// is plainly too large: infinities of a mask or of an untaken branch are how such code is written.
  void explain_unreached(std::size_t process) {
    if (rules_.empty()) return;
    std::vector<const Rule*> said;
    for (const Origin& origin : unreached_origins(context(*rules_.front(), process))) {
      // A rule that knows what became of it (zeros, where it was divided by) has said more already.
      const TraceView& view = processes_[process].view;
      const bool known = std::any_of(drafts_.begin(), drafts_.end(), [&](const Draft& draft) {
        const std::int64_t site = draft.finding.culprit.site;
        return draft.processes.front() == process && view.site(site) != nullptr &&
               view.outermost_op(site) == view.outermost_op(origin.site->id);
      });
      if (known) continue;
      const Winner best = winner(process, origin);
      if (best.rule == nullptr || best.claim != Claim::proven || !best.rule->holds_for_metrics) continue;
      if (std::find(said.begin(), said.end(), best.rule) != said.end()) continue;
      said.push_back(best.rule);
      const RuleContext rule_context = context(*best.rule, process);
      Finding finding = rule_context.finding();
      finding.severity = Severity::warning;
      finding.culprit = rule_context.culprit(origin.site->id);
      finding.steps = origin.steps;
      finding.call = {processes_[process].view.run().pid, origin.event->order};
      best.rule->explain(rule_context, origin, finding);
      finding.message += " Neither the loss nor a gradient was seen to depend on it.";
      drafts_.push_back({std::move(finding), {process}});
    }
  }

  void explain(std::size_t process, const Origin& origin) {
    if (rules_.empty() || brought_by_exchange(context(*rules_.front(), process), origin)) return;
    const Rule* const best = winner(process, origin).rule;
    if (best == nullptr) return;
    const RuleContext rule_context = context(*best, process);
    Finding finding = rule_context.finding();
    finding.culprit = rule_context.culprit(origin.site->id);
    finding.culprit.phase = origin.phase;
    finding.steps = origin.steps;
    finding.chain = origin.chain;
    finding.call = {processes_[process].view.run().pid, origin.event->order};
    best->explain(rule_context, origin, finding);
    // A diverging run overflows in one layer after the other; that is one verdict, at the first.
    const auto earlier = std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& draft) {
      return draft.processes.front() == process && draft.finding.rule == finding.rule &&
             draft.finding.culprit.phase == finding.culprit.phase && !draft.finding.chain.empty();
    });
    if (earlier == drafts_.end()) {
      drafts_.push_back({std::move(finding), {process}});
      return;
    }
    StepSpan& steps = earlier->finding.steps;
    steps.last = std::max(steps.last, finding.steps.last);
    steps.count += finding.steps.count;
    const std::string place = processes_[process].view.describe(origin.site->id);
    auto& evidence = earlier->finding.evidence;
    const auto also =
        std::find_if(evidence.begin(), evidence.end(), [](const auto& item) { return item.first == "also_at"; });
    if (also == evidence.end()) {
      evidence.emplace_back("also_at", place);
    } else if (std::string& text = std::get<std::string>(also->second); text.size() < 300) {
      text += "; " + place;
    }
  }

  void add(std::vector<Finding> findings, const std::vector<std::size_t>& processes) {
    for (Finding& finding : findings)
      drafts_.push_back({std::move(finding), processes});
  }

  const std::deque<ProcessAnalysis>& processes_;
  const AnalysisOptions& options_;
  Report& report_;
  std::vector<const Rule*> rules_;
  std::vector<Draft> drafts_;
  std::int64_t evaluated_ = 0;
};

/// Says on which ranks a finding was made when it was not made on all.
void name_ranks(Draft& draft, const std::deque<ProcessAnalysis>& processes) {
  if (processes.size() < 2 || draft.processes.size() == processes.size()) return;
  std::string ranks;
  for (const std::size_t process : draft.processes) {
    const trace::RunInfo& run = processes[process].view.run();
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ",
                         run.rank != trace::none ? std::to_string(run.rank) : fmt::format("pid {}", run.pid));
  }
  if (draft.processes.empty()) return;
  const bool ranked = processes[draft.processes.front()].view.run().rank != trace::none;
  draft.finding.proof += fmt::format("{}{}{}", draft.finding.proof.empty() ? "" : " · ",
                                     !ranked                       ? "in "
                                     : draft.processes.size() == 1 ? "on rank "
                                                                   : "on ranks ",
                                     ranks);
  draft.finding.evidence.emplace_back("ranks", ranks);
}

Verdict verdict_of(const std::vector<Finding>& findings) {
  Verdict verdict = Verdict::clean;
  for (const Finding& finding : findings) {
    verdict = std::max(verdict, static_cast<Verdict>(static_cast<int>(finding.severity) + 1));
  }
  return verdict;
}

}  // namespace

std::vector<std::string> check_options(const AnalysisOptions& options) {
  std::vector<std::string> problems;
  for (const auto& [code, values] : options.parameters) {
    const Rule* const rule = find_rule(code);
    if (rule == nullptr) {
      problems.push_back(fmt::format("there is no rule {}; `ampscope rules` lists them", code));
      continue;
    }
    for (const auto& [name, value] : values) {
      const auto spec = std::find_if(rule->parameters.begin(), rule->parameters.end(),
                                     [&, &wanted = name](const ParameterSpec& each) { return wanted == each.name; });
      if (spec == rule->parameters.end()) {
        problems.push_back(
            fmt::format("rule {} has no parameter {}; `ampscope explain {}` lists them", code, name, code));
      } else if (!(value >= spec->minimum && value <= spec->maximum)) {
        problems.push_back(fmt::format("{}.{} = {} is out of range; it can be {} to {}", code, name, value,
                                       spec->minimum, spec->maximum));
      }
    }
  }
  for (const auto* patterns : {&options.select, &options.ignore}) {
    for (const std::string& pattern : *patterns) {
      const auto rules = all_rules();
      const bool any = !pattern.empty() && std::any_of(rules.begin(), rules.end(),
                                                       [&](const Rule* rule) { return matches(*rule, pattern); });
      if (!any) problems.push_back(fmt::format("no rule matches '{}'; `ampscope rules` lists them", pattern));
    }
  }
  return problems;
}

Report analyze(const std::vector<trace::Trace>& traces, const AnalysisOptions& options) {
  Report report;
  if (traces.empty()) return report;
  const SkipLimits limits = skip_limits(options.parameters);
  std::deque<ProcessAnalysis> processes;
  for (const trace::Trace* trace : by_rank(traces))
    processes.emplace_back(*trace, limits);
  fill_tables(processes, report);

  std::vector<Draft> drafts = Evaluation(processes, options, report).run();
  merge_equal(drafts);
  link_symptoms(drafts);
  for (Draft& draft : drafts) {
    if (draft.finding.severity < options.min_severity) continue;
    name_ranks(draft, processes);
    report.findings.push_back(std::move(draft.finding));
  }
  std::stable_sort(report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
    if (a.severity != b.severity) return a.severity > b.severity;
    if (a.steps.first != b.steps.first) return a.steps.first < b.steps.first;
    return a.rule < b.rule;
  });
  report.verdict = verdict_of(report.findings);
  return report;
}

}  // namespace ampscope::analyzers
