// What a narrow type has swallowed on the way to an operation that cannot bear a zero: the constant that was to keep a
// denominator from being zero (1e-12), the distance that was to keep a probability from being one (1 - 1e-7), or a
// value that was small and is zero now.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "analyzers/core/finding.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

enum class Vanished : std::uint8_t {
  nothing,
  guard,  ///< a constant that rounds to zero
  one,    ///< a constant near one that rounds to one, or one that is lost beside a larger number
  value,  ///< a value that fp32 would keep apart from zero
};

struct Loss {
  Vanished what = Vanished::nothing;
  const trace::Site* site = nullptr;  ///< where it was lost
  trace::DType dtype = trace::DType::unknown;
  double constant = 0;        ///< guard, one
  bool absorbed = false;      ///< one: the constant itself is not near one, it was added to something that is
  bool in_fp32 = false;       ///< the same is lost in fp32
  Claim claim = Claim::none;  ///< how sure it is
  bool at_one = false;        ///< value: it was near one, not near zero
  const char* because = "";   ///< value: what shows it, as the end of a sentence
};

/// What was lost before the call of `event` made a non-finite value; `op` is the operation to blame for that, which may
/// lie before it. Nothing for an operation that bears zeros, and where no loss can be shown.
[[nodiscard]] Loss find_loss(const TraceView& view, const trace::NonfiniteEvent& event, const trace::Site& op);

/// "log", "the division": what met the zero, for a sentence.
[[nodiscard]] std::string zero_meets(const TraceView& view, const trace::Site& op);

/// Calls that made non-finite values which reached neither loss nor gradients nor weights, because of such a loss. They
/// did no harm yet that the run shows: a matching cost, a metric, a value that is selected away.
struct Unreached {
  const trace::NonfiniteEvent* event = nullptr;
  const trace::Site* op = nullptr;
  Loss loss;
};
[[nodiscard]] std::vector<Unreached> unreached_losses(const RuleContext& context, Vanished what);

}  // namespace ampscope::analyzers
