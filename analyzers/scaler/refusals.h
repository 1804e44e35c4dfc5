// Calls in which the scaler threw, and what the program did that made it throw. The words of the exception name the
// rule that was broken; the events before it tell by which mistake, and each mistake belongs to one rule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/core/finding.h"
#include "analyzers/core/protocol.h"
#include "trace/model.h"

namespace ampscope::analyzers {

enum class RefusalCause : std::uint8_t {
  unscale_in_window,    ///< unscale_ again after another micro-batch of the same window (AMP204)
  unscale_again,        ///< unscale_ twice on the same gradients (AMP205)
  update_missing,       ///< step or unscale_ of an iteration, the one before had no update (AMP206)
  unscale_after_step,   ///< in one iteration (AMP206)
  step_again,           ///< step twice on the same gradients (AMP206)
  update_again,         ///< update right after an update (AMP207)
  half_gradients,       ///< (AMP209)
  no_gradients,         ///< (AMP210)
  update_without_step,  ///< update after a backward pass, but nothing was unscaled or stepped (AMP218)
  unscaled_loss,        ///< no loss was ever scaled (AMP219)
  closure,              ///< (AMP220)
  bypassed,             ///< the optimizer was stepped without the scaler (AMP208)
};

struct Refusal {
  RefusalCause cause = RefusalCause::update_missing;
  StepSpan steps;
  std::int64_t site = trace::none;
  std::int64_t optimizer = trace::none;
  std::int64_t earlier_site = trace::none;  ///< of the call that this one collides with
  int passes = 0;                           ///< backward passes of the window so far
  bool cleared = false;   ///< no_gradients: gradients were cleared between the backward pass and the call
  bool backward = false;  ///< a backward pass ran since the optimizer stepped or the scaler was updated
  std::int64_t clear_site = trace::none;
};

/// In order. Equal ones of a run of equal steps are one.
[[nodiscard]] std::vector<Refusal> find_refusals(const TraceView& view);

/// The first refusal of a cause, with the steps of all of them; empty (count 0) when there is none.
[[nodiscard]] Refusal first_refusal(const TraceView& view, RefusalCause cause);

/// "RuntimeError: unscale_() has …" when the run ended with an exception, else "".
[[nodiscard]] std::string last_words(const TraceView& view);

}  // namespace ampscope::analyzers
