// What a rule is given to look at.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/core/rule.h"
#include "analyzers/core/trace_view.h"
#include "analyzers/rootcause/root_cause.h"
#include "analyzers/scaler/skips.h"
#include "analyzers/scaler/tuner.h"

namespace ampscope::analyzers {

/// One training process, with the analyses that several rules share.
struct ProcessAnalysis {
  ProcessAnalysis(const trace::Trace& trace, const SkipLimits& limits);
  TraceView view;
  std::vector<SkipAnalysis> skips;  ///< by scaler id
  RootCause root_cause;
  std::vector<std::optional<Tuning>> tunings;  ///< by scaler id; empty where nothing was recorded to tune by

  /// Whether the scaler was meant to make this skip, and no fault that was found lies in that step.
  [[nodiscard]] bool by_design(const Skip& skip) const noexcept;
};

/// Values of rule parameters that differ from their defaults, by rule code and parameter name.
using ParameterValues = std::map<std::string, std::map<std::string, double>>;

class RuleContext {
 public:
  RuleContext(const Rule& rule, const ProcessAnalysis& process, const std::deque<ProcessAnalysis>& processes,
              const ParameterValues& values)
      : rule_(&rule), process_(&process), processes_(&processes), values_(&values) {}

  [[nodiscard]] const Rule& rule() const noexcept { return *rule_; }
  [[nodiscard]] const TraceView& view() const noexcept { return process_->view; }
  [[nodiscard]] const trace::Trace& trace() const noexcept { return process_->view.trace(); }
  [[nodiscard]] std::span<const SkipAnalysis> skips() const noexcept { return process_->skips; }
  [[nodiscard]] const std::optional<Tuning>& tuning(std::int64_t scaler) const {
    return process_->tunings.at(static_cast<std::size_t>(scaler));
  }
  [[nodiscard]] const RootCause& root_cause() const noexcept { return process_->root_cause; }
  [[nodiscard]] bool by_design(const Skip& skip) const noexcept { return process_->by_design(skip); }
  /// All processes of the run, by rank.
  [[nodiscard]] const std::deque<ProcessAnalysis>& processes() const noexcept { return *processes_; }

  /// Value of a parameter of this rule: as set, or its default. `name` must be one of the descriptor's.
  [[nodiscard]] double parameter(std::string_view name) const;

  /// A finding with the rule's code, name, severity and precision_fault filled in.
  [[nodiscard]] Finding finding() const;
  /// A culprit that tells what is known of a site; of an unknown one, nothing.
  [[nodiscard]] Culprit culprit(std::int64_t site) const;

 private:
  const Rule* rule_;
  const ProcessAnalysis* process_;
  const std::deque<ProcessAnalysis>* processes_;
  const ParameterValues* values_;
};

/// A parameter's value among `values`, or its default; out of range values are brought into it.
[[nodiscard]] double parameter_value(const Rule& rule, std::string_view name, const ParameterValues& values);

}  // namespace ampscope::analyzers
