// What analysis has to say: findings and the report that carries them. Reporters depend on this and on nothing behind
// it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "trace/model.h"

namespace ampscope::analyzers {

enum class Severity : std::uint8_t { info, warning, error };

/// A number or a text of the evidence. Non-finite numbers are kept as such; reporters spell them.
using EvidenceValue = std::variant<double, std::string>;
/// Named values in the order in which they are to be shown.
using Evidence = std::vector<std::pair<std::string, EvidenceValue>>;

/// What is to blame. An empty optional is null in JSON.
struct Culprit {
  std::optional<std::string> op;
  std::optional<trace::Phase> phase;
  std::optional<std::string> module;
  std::optional<std::string> parameter;
  std::optional<trace::SourceLine> source;
  std::int64_t site = trace::none;  ///< for reporters that draw; not in the contract
};

struct StepSpan {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t count = 0;  ///< steps concerned, which need not be all between
};

/// One observed call, for whoever kept its arguments.
struct CallKey {
  std::int64_t pid = 0;
  std::int64_t order = 0;  ///< NonfiniteEvent::order
};

/// A link of the chain from where a value was born to where a person sees it, for root-cause findings.
struct ChainLink {
  std::int64_t step = 0;
  std::string op;
  trace::Phase phase = trace::Phase::forward;
  std::string module;
  std::optional<trace::SourceLine> source;
  trace::DType dtype = trace::DType::unknown;
  std::optional<double> input_absmax;   ///< largest finite magnitude that went in
  std::optional<double> output_absmax;  ///< largest finite magnitude that came out
  std::int64_t nonfinite = 0;           ///< elements of the output
  std::string note;                     ///< "overflows", "passes on", "loss", "skipped step"
};

struct Finding {
  std::string rule;  ///< "AMP202"
  std::string name;  ///< "clip-before-unscale"
  Severity severity = Severity::warning;
  std::string title;    ///< a sentence in the reader's terms, lower case, no full stop
  std::string message;  ///< the proof in one or two sentences, numbers included
  std::string proof;  ///< the shortest form of the numbers, for one terminal line: "norm seen 48 211 · true norm 0.736"
  bool precision_fault = true;  ///< false: a wider type would not have helped, or nothing shows that it would
  bool same_in_fp32 = false;    ///< the same happens in fp32, by what it is or as computing it again has shown
  Culprit culprit;
  StepSpan steps;
  Evidence evidence;
  std::string fix;                    ///< what to do; code where it can be code
  std::string fix_cpp;                ///< the same for LibTorch, empty when it is the same
  std::vector<std::string> symptoms;  ///< rule codes explained by this one
  std::vector<Finding> explained;     ///< those findings themselves, folded under this one
  std::vector<ChainLink> chain;
  std::optional<CallKey> call;  ///< in which the value was born, for root-cause findings; not in the contract
};

struct NotEvaluated {
  std::string rule;
  std::string name;
  std::string needs;  ///< what was not recorded: "gradient statistics (--level grads or higher)"
};

enum class Verdict : std::uint8_t { clean, info, warning, error };

[[nodiscard]] const char* severity_name(Severity severity) noexcept;
[[nodiscard]] const char* verdict_name(Verdict verdict) noexcept;
[[nodiscard]] const char* phase_name(trace::Phase phase) noexcept;

}  // namespace ampscope::analyzers
