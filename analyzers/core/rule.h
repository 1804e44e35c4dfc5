// What a rule is. One rule is one .cpp file that defines one constant of this type, one page docs/rules/AMPnnn.md and
// fixtures that fire it and that do not; docs/adding-a-rule.md is the recipe.
//
// There are two kinds. Most rules look at a process (or at the whole run) and report what they find: `evaluate`. Rules
// about the birth of a non-finite value do not search for it themselves: the root cause analysis finds it, every such
// rule says how well it explains it (`claim`), and the best one writes the finding (`explain`). So a non-finite value
// has one verdict, however many rules know something about it.
//
// Rules do no I/O, keep no state, and give the same findings for the same trace.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analyzers/core/finding.h"

namespace ampscope::analyzers {

class RuleContext;
struct Origin;

enum class Family : std::uint8_t {
  autocast,         ///< AMP1xx
  scaler_protocol,  ///< AMP2xx
  scaler_dynamics,  ///< AMP3xx
  overflow,         ///< AMP4xx
  lost_precision,   ///< AMP5xx
  not_precision,    ///< AMP6xx
  performance,      ///< AMP7xx
  processes,        ///< AMP8xx
  run,              ///< AMP9xx
};

/// A part of a trace that a rule cannot do without. A rule of which one is missing is reported as not evaluated.
enum class Stream : std::uint8_t {
  protocol,   ///< events of the training protocol (every level)
  ops,        ///< operator calls with their dtypes (every level)
  gradients,  ///< gradient statistics by parameter (grads and higher)
  sentinel,   ///< non-finite checks of operator outputs (auto and higher)
  numerics,   ///< full statistics of operator outputs on sampled steps (auto and higher)
};

/// A number of a rule that people can set (AnalysisOptions::parameters).
struct ParameterSpec {
  const char* name;
  double default_value;
  double minimum;
  double maximum;
  bool integer;
  const char* help;  ///< one sentence, with the unit
};

/// How well a rule explains the birth of a non-finite value. The highest claim wins; between equal ones the lower code.
enum class Claim : std::uint8_t {
  none,       ///< not of this rule's kind
  fallback,   ///< it can be described, but not explained
  plausible,  ///< op and dtypes fit
  supported,  ///< the statistics at the scene fit as well
  proven,     ///< computing it again, or arithmetic that leaves no other way, shows it
};

struct Rule {
  const char* code;  ///< "AMP202"; never reused
  const char* name;  ///< "clip-before-unscale"
  Family family;
  Severity severity;            ///< the usual one; a finding may carry another
  const char* summary;          ///< one line for `ampscope rules`: when it fires
  bool precision_fault = true;  ///< false: a wider type would not help
  std::span<const Stream> needs = {};
  std::span<const ParameterSpec> parameters = {};
  /// Codes, or their beginnings ("AMP4"), of findings that explain one of this rule when they concern the same steps.
  std::span<const std::string_view> symptom_of = {};
  /// Looks at one process. Null for rules that claim origins or that look at the whole run.
  void (*evaluate)(const RuleContext& context, std::vector<Finding>& findings) = nullptr;
  /// Looks once at all processes together; the context's process is the first one.
  void (*evaluate_run)(const RuleContext& context, std::vector<Finding>& findings) = nullptr;
  Claim (*claim)(const RuleContext& context, const Origin& origin) = nullptr;
  /// Of a rule that claims: a proven one stands, as a warning, where neither loss nor gradient depends on the value (a
  /// metric, validation). For rules that say which operator passed the end of fp16, or that data are bad, and no more.
  bool holds_for_metrics = false;
  /// Completes the finding of an origin this rule has won: code, steps, culprit and chain are already in it.
  void (*explain)(const RuleContext& context, const Origin& origin, Finding& finding) = nullptr;
};

[[nodiscard]] const char* family_name(Family family) noexcept;
/// "gradient statistics (--level grads or higher)"
[[nodiscard]] const char* stream_need(Stream stream) noexcept;

}  // namespace ampscope::analyzers
