#include "analyzers/core/discarded_gradients.h"

namespace ampscope::analyzers {

namespace {

using trace::EventKind;
namespace event_flag = trace::event_flag;

/// What becomes of one optimizer's gradients, event by event.
class Fate {
 public:
  explicit Fate(std::int64_t owner) : owner_(owner) {}

  /// Returns whether they were used, non-finite values and all.
  bool used_by(const trace::ProtocolEvent& event) {
    const bool own = event.object == owner_ || event.object == trace::none;
    switch (event.kind) {
      case EventKind::backward:
        if ((event.flags & event_flag::gradients_only) == 0 && reaches(event)) pending_ = true;
        return false;
      case EventKind::gradient_clear:
        discarded_ = discarded_ || (own && pending_);
        pending_ = pending_ && !own;
        return false;
      case EventKind::unscale:
        if (!own) return false;
        pending_ = false;
        unscaled_ = true;
        return (event.flags & event_flag::found_inf) != 0;
      case EventKind::optimizer_step:
        return own && (pending_ || (!unscaled_ && (event.flags & event_flag::nonfinite_gradients) != 0));
      case EventKind::optimizer_skip:
        return own;
      default:
        return false;
    }
  }

  [[nodiscard]] bool pending() const noexcept { return pending_; }
  [[nodiscard]] bool discarded() const noexcept { return discarded_ && !pending_; }

 private:
  /// Until it is known who owns which parameters, any pass may have reached them.
  [[nodiscard]] bool reaches(const trace::ProtocolEvent& event) const noexcept {
    return event.optimizers == 0 || owner_ >= 64 || (event.optimizers >> owner_ & 1U) != 0;
  }

  std::int64_t owner_;
  bool pending_ = false;    ///< a pass has reached them, and nobody has looked at them yet
  bool unscaled_ = false;   ///< and no non-finite values were found
  bool discarded_ = false;  ///< what a pass had left was cleared
};

}  // namespace

bool discarded(const TraceView& view, const trace::NonfiniteGradient& gradient) {
  const trace::Parameter* const parameter = view.parameter(gradient.parameter);
  if (parameter == nullptr || parameter->optimizer == trace::none) return false;
  // A single optimizer's gradients are cleared by a program that keeps them from it; that is for other rules to tell.
  if (view.trace().optimizers.size() < 2) return false;
  Fate fate(parameter->optimizer);
  for (const trace::ProtocolEvent& event : view.events(gradient.step)) {
    if (fate.used_by(event)) return false;
  }
  if (!fate.pending()) return fate.discarded();
  for (const trace::ProtocolEvent& event : view.events(gradient.step + 1)) {
    if (fate.used_by(event)) return false;
    if (!fate.pending()) break;
  }
  return fate.discarded();
}

}  // namespace ampscope::analyzers
