#include "analyzers/scaler/refusals.h"

#include <map>

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;
using trace::ProtocolEvent;

/// What an optimizer went through, as far as the scaler's rules are concerned.
struct History {
  std::int64_t unscale_site = trace::none;
  std::int64_t step_site = trace::none;
  bool found_inf = false;               ///< when it was unscaled last
  bool cleared_since = false;           ///< gradients were cleared after that
  bool backward_since_step = false;     ///< since its last step or skip
  std::map<int, std::int64_t> windows;  ///< how often a window had so many backward passes
};

class Finder {
 public:
  explicit Finder(const TraceView& view) : view_(view) {}

  std::vector<Refusal> find() {
    walk_protocol(view_, [this](const StepSpan& span, const ProtocolEvent& event, const ProtocolState& before) {
      follow(span, event, before);
    });
    return std::move(found_);
  }

 private:
  void follow(const StepSpan& span, const ProtocolEvent& event, const ProtocolState& before) {
    switch (event.kind) {
      case EventKind::backward:
        if ((event.flags & event_flag::gradients_only) != 0) break;
        backward_ = true;
        cleared_after_backward_ = false;
        for (auto& [optimizer, history] : histories_) {
          const bool reached = event.optimizers == 0 || (optimizer < 64 && (event.optimizers >> optimizer & 1U) != 0);
          if (reached) history.backward_since_step = true;
        }
        break;
      case EventKind::gradient_clear:
        cleared_after_backward_ = true;
        clear_site_ = event.site;
        for (auto& [optimizer, history] : histories_) {
          if (event.object == trace::none || event.object == optimizer) history.cleared_since = true;
        }
        break;
      case EventKind::unscale: {
        History& history = histories_[event.object];
        history.unscale_site = event.site;
        history.found_inf = (event.flags & event_flag::found_inf) != 0;
        history.cleared_since = false;
        history.backward_since_step = true;
        break;
      }
      case EventKind::optimizer_step:
      case EventKind::optimizer_skip: {
        if (event.kind == EventKind::optimizer_step && (event.flags & event_flag::through_scaler) == 0) direct_ = true;
        History& history = histories_[event.object];
        history.step_site = event.site;
        history.backward_since_step = false;
        history.windows[before.of(event.object).passes] += span.count;
        break;
      }
      case EventKind::scaler_update:
        backward_ = direct_ = false;
        break;
      case EventKind::refusal:
        refuse(span, event, before);
        break;
      default:
        break;
    }
  }

  /// Whether windows of more than one backward pass are what this program does.
  [[nodiscard]] static bool accumulates(const History& history) {
    std::int64_t one = 0;
    std::int64_t more = 0;
    for (const auto& [passes, count] : history.windows)
      (passes <= 1 ? one : more) += count;
    return one == 0 || more > one;
  }

  void refuse(const StepSpan& span, const ProtocolEvent& event, const ProtocolState& before) {
    Refusal refusal;
    refusal.steps = span;
    refusal.site = event.site;
    refusal.optimizer = event.object;
    refusal.backward = backward_;
    refusal.cleared = cleared_after_backward_;
    refusal.clear_site = clear_site_;
    const History& history = histories_[event.object];
    const GradientState& gradients = before.of(event.object);
    refusal.passes = gradients.passes;
    if ((event.flags & event_flag::unscaled_twice) != 0) {
      refusal.earlier_site = history.unscale_site;
      if (gradients.unscaled && !history.cleared_since) {
        refusal.cause = RefusalCause::unscale_again;
      } else if (gradients.mixed && !history.found_inf && accumulates(history)) {
        refusal.cause = RefusalCause::unscale_in_window;
      }
    } else if ((event.flags & (event_flag::stepped_twice | event_flag::unscaled_late)) != 0) {
      refusal.earlier_site = history.step_site;
      if (!history.backward_since_step) {
        refusal.cause = (event.flags & event_flag::stepped_twice) != 0 ? RefusalCause::step_again
                                                                       : RefusalCause::unscale_after_step;
      }
    } else if ((event.flags & event_flag::half_gradients) != 0) {
      refusal.cause = RefusalCause::half_gradients;
    } else if ((event.flags & event_flag::no_gradients) != 0) {
      refusal.cause = RefusalCause::no_gradients;
    } else if ((event.flags & event_flag::never_scaled) != 0) {
      // A closure that would have made the first gradients never ran.
      const bool by_closure = optimizer_name(view_, event.object).find("LBFGS") != std::string::npos;
      refusal.cause = by_closure ? RefusalCause::closure : RefusalCause::unscaled_loss;
    } else if ((event.flags & event_flag::needs_closure) != 0) {
      refusal.cause = RefusalCause::closure;
    } else if (direct_) {
      refusal.cause = RefusalCause::bypassed;
    } else {
      refusal.cause = backward_ ? RefusalCause::update_without_step : RefusalCause::update_again;
    }
    found_.push_back(refusal);
  }

  const TraceView& view_;
  std::map<std::int64_t, History> histories_;
  bool backward_ = false;                ///< since the last update
  bool direct_ = false;                  ///< an optimizer stepped without the scaler since the last update
  bool cleared_after_backward_ = false;  ///< the latest of both
  std::int64_t clear_site_ = trace::none;
  std::vector<Refusal> found_;
};

}  // namespace

std::vector<Refusal> find_refusals(const TraceView& view) {
  if (!view.any_event(EventKind::refusal)) return {};
  return Finder(view).find();
}

Refusal first_refusal(const TraceView& view, RefusalCause cause) {
  Refusal result;
  for (const Refusal& refusal : find_refusals(view)) {
    if (refusal.cause != cause) continue;
    const StepSpan so_far = result.steps;
    if (so_far.count == 0) result = refusal;
    result.steps = so_far;
    extend(result.steps, refusal.steps);
  }
  return result;
}

std::string last_words(const TraceView& view) {
  const auto& end = view.trace().end;
  return end && end->how == "exception" ? end->detail : "";
}

}  // namespace ampscope::analyzers
