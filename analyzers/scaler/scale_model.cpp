#include "analyzers/scaler/scale_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "analyzers/core/gradient_loss.h"
#include "analyzers/core/scale_dependence.h"
#include "trace/series.h"

namespace ampscope::analyzers {

namespace {

using trace::DType;
using trace::GradientWindow;

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Half a unit in the last place of fp16: what the recorded magnitude may differ from the exact one.
constexpr double rounding = 0x1p-11;
constexpr std::size_t most_windows = 6000;

double limit_of(double unscaled) {
  return unscaled > 0 ? overflows_from / unscaled : infinity;
}

/// Largest unscaled gradient of any parameter, by the step in which its window begins.
std::map<std::int64_t, double> largest_gradients(const TraceView& view) {
  std::map<std::int64_t, double> largest;
  for (const GradientWindow& window : view.trace().gradients) {
    if (window.backward_dtype != DType::float16 || window.stats.absmax <= 0) continue;
    double& value = largest[window.first_step];
    value = std::max(value, window.stats.absmax);
  }
  return largest;
}

/// Limits of the steps in which the backward pass was looked at; NaN elsewhere.
class Seen {
 public:
  Seen(const TraceView& view, std::int64_t scaler) : gradients_(largest_gradients(view)) {
    for (const trace::SeriesPoint& point : view.trace().series) {
      if (point.name != trace::backward_absmax_series || point.object != scaler) continue;
      if (point.nonfinite < point.count) points_[point.first_step] = &point;
    }
  }

  [[nodiscard]] bool anything() const { return !points_.empty() || !gradients_.empty(); }

  /// Fills in what is known of a step that was taken.
  bool fill(StepLimit& limit, double used) const {
    if (const auto after = points_.upper_bound(limit.step); after != points_.begin()) {
      const trace::SeriesPoint& point = *std::prev(after)->second;
      if (limit.step <= point.last_step) {
        const bool alone = point.first_step == point.last_step;
        // Of several steps one had the largest value and one the smallest; take the middle one for the largest.
        const bool worst = limit.step == point.first_step + (point.last_step - point.first_step) / 2;
        limit.scale = limit_of(alone || worst ? point.max : point.mean);
        limit.low = std::max(limit_of(point.max) * (1 - rounding), used);
        limit.high = limit_of(point.min) * (1 + rounding);
        limit.scale = std::clamp(limit.scale, limit.low, std::max(limit.low, limit.high));
        return alone;
      }
    }
    if (const auto after = gradients_.upper_bound(limit.step); after != gradients_.begin() && points_.empty()) {
      // Only parameters were looked at: what lies between may be larger.
      limit.high = std::max(limit_of(std::prev(after)->second), used);
      limit.low = used;
      limit.scale = limit.high;
    }
    return false;
  }

 private:
  std::map<std::int64_t, double> gradients_;
  std::map<std::int64_t, const trace::SeriesPoint*> points_;
};

/// What the operator that overflowed would have made in higher precision, divided by the scale; 0 when not known.
double replayed_magnitude(const TraceView& view, std::int64_t step, double scale) {
  double largest = 0;
  for (const trace::NonfiniteEvent* event : view.nonfinite_events(step)) {
    const trace::Site* const site = view.site(event->site);
    if (site == nullptr || site->phase != trace::Phase::backward || site->in_recompute) continue;
    if (event->replay.done && event->replay.finite) largest = std::max(largest, event->replay.absmax / scale);
  }
  return largest;
}

/// Steps whose limit is not known take it from their neighbours, within what the recorded run allows.
void interpolate(std::vector<StepLimit>& limits, const std::vector<bool>& known) {
  const std::size_t count = limits.size();
  std::vector<std::size_t> next(count, count);
  for (std::size_t i = count; i-- > 0;)
    next[i] = known[i] ? i : (i + 1 < count ? next[i + 1] : count);
  std::size_t previous = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (known[i]) {
      previous = i;
      continue;
    }
    double value = infinity;
    if (previous < count && next[i] < count) {
      const double from = std::log2(limits[previous].scale);
      const double to = std::log2(limits[next[i]].scale);
      const double part = static_cast<double>(i - previous) / static_cast<double>(next[i] - previous);
      // While steps are skipped nothing changes, so before the first step taken only what follows counts.
      value = std::isfinite(from) && std::isfinite(to) ? std::exp2(from + (to - from) * part) : std::exp2(to);
    } else if (next[i] < count) {
      value = limits[next[i]].scale;
    } else if (previous < count) {
      value = limits[previous].scale;
    }
    StepLimit& limit = limits[i];
    const double highest = limit.skipped ? limit.high * (1 - 0x1p-24) : limit.high;
    limit.scale = std::clamp(value, limit.low, std::max(limit.low, highest));
  }
}

/// Parameters whose gradients were flushed as a whole, as far as their neighbours tell.
std::set<std::int64_t> flushed_entirely(const TraceView& view) {
  constexpr double notable = 0.05;
  std::set<std::int64_t> result;
  for (const ParameterLoss& loss : measure_gradient_loss(view, notable).parameters) {
    if (loss.all_zero) result.insert(loss.parameter);
  }
  return result;
}

std::vector<FlushSlice> make_slices(const TraceView& view) {
  const std::set<std::int64_t> entirely = flushed_entirely(view);
  std::map<std::int64_t, std::vector<const GradientWindow*>> by_step;
  std::size_t windows = 0;
  for (const GradientWindow& window : view.trace().gradients) {
    if (window.backward_dtype != DType::float16 || window.stats.count == 0) continue;
    by_step[window.first_step].push_back(&window);
    ++windows;
  }
  const std::size_t every = windows / most_windows + 1;
  std::vector<FlushSlice> slices;
  std::vector<const GradientWindow*> with_values;
  std::size_t index = 0;
  for (const auto& [first, list] : by_step) {
    if (index++ % every != 0) {
      if (!slices.empty()) slices.back().last_step = first;
      continue;
    }
    FlushSlice slice;
    slice.first_step = first;
    for (const GradientWindow* window : list) {
      slice.last_step = std::max(slice.last_step, window->last_step);
      slice.elements += static_cast<double>(window->stats.count);
      if (!window->stats.exponents.empty()) with_values.push_back(window);
    }
    slices.push_back(std::move(slice));
  }
  const std::vector<WindowLoss> losses = window_losses(with_values);
  auto next = losses.cbegin();
  for (FlushSlice& slice : slices) {
    for (const GradientWindow* window : by_step.at(slice.first_step)) {
      const bool zeros = window->stats.exponents.empty();
      if (zeros && (window->stats.nonfinite() != 0 || !entirely.contains(window->parameter))) continue;
      const double scale = window->scale_max > 0 && std::isfinite(window->scale_max) ? window->scale_max : 1;
      const int recorded = static_cast<int>(std::lround(std::log2(scale)));
      ParameterFlush parameter{window, zeros ? FlushEstimate(window->stats, smallest_kept(*window)) : next->estimate, 0,
                               recorded, zeros};
      if (!zeros) parameter.lost_as_recorded = (next++)->lost * static_cast<double>(window->stats.count);
      for (std::size_t i = 0; i < FlushSlice::scales; ++i)
        slice.share[i] += parameter.lost(FlushSlice::lowest_log2 + static_cast<int>(i));
      slice.parameters.push_back(parameter);
    }
    for (double& share : slice.share)
      share /= slice.elements;
  }
  return slices;
}

}  // namespace

double ParameterFlush::lost(int log2_scale) const {
  // Nothing tells how far below the edge they lie: at a scale that is notably larger they may be back.
  if (all_zero) return log2_scale <= recorded_log2 + 1 ? static_cast<double>(window->stats.count) : 0;
  if (log2_scale >= recorded_log2) {
    const double kept_again = estimate.lost() > 0 ? lost_as_recorded / estimate.lost() : 1;
    return kept_again * estimate.lost_if_raised(log2_scale - recorded_log2);
  }
  // Half of the smallest subnormal rounds to zero, what is larger does not.
  constexpr int rounds_to_zero = -25;
  const double more = static_cast<double>(window->stats.exponents.below(rounds_to_zero - log2_scale));
  return std::min(lost_as_recorded + more, static_cast<double>(window->stats.count));
}

double ParameterFlush::overflowed(int log2_scale) const {
  return static_cast<double>(window->stats.exponents.at_least(16 - log2_scale));
}

double FlushSlice::share_at(double scale) const noexcept {
  if (!(scale > 0)) return 1;
  const double place = std::clamp(std::log2(scale) - lowest_log2, 0.0, static_cast<double>(scales - 1));
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, scales - 1);
  const double part = place - static_cast<double>(below);
  return share[below] * (1 - part) + share[above] * part;
}

bool no_scale_helps(const TraceView& view, std::int64_t step) {
  if (view.outcome(step).loss_nonfinite) return true;
  for (const trace::NonfiniteEvent* event : view.nonfinite_events(step)) {
    const trace::Site* const site = view.site(event->site);
    if (site == nullptr || site->phase != trace::Phase::backward || site->in_recompute) continue;
    if (event->kind != trace::OriginKind::producer) return false;
    // The first value of the backward pass that is not finite: one that higher precision has as well?
    return takes_no_gradient(view, *event) || (event->replay.done && !event->replay.finite);
  }
  return false;
}

ProgramsHand programs_hand(const TraceView& view, std::int64_t scaler) {
  ProgramsHand hand;
  std::size_t updates = 0;
  bool same = true;
  bool lowers = true;
  bool raises = true;
  const trace::ScalerUpdate* previous = nullptr;
  const auto add = [&](float from, float to) {
    if (updates == 0 || from == to) return;  // before the first, that is where the run starts
    if (!hand.assigned.empty()) same = same && hand.assigned.back().scale == to;
    lowers = lowers && to < from;
    raises = raises && to > from;
    hand.assigned.push_back({updates, to});
  };
  for (const trace::ScalerUpdate* update : view.updates(scaler)) {
    if (previous != nullptr && previous->scale_after != update->scale_before) {
      add(previous->scale_after, update->scale_before);
    }
    if (update->assigned) {
      add(update->scale_before, update->scale_after);
    } else {
      ++updates;
    }
    previous = update;
  }
  if (hand.assigned.empty()) return hand;
  // One value that only ever lowers the scale, or only ever raises it, is a bound that the program keeps it in. What is
  // set once says nothing of what it would be set to elsewhere.
  if (same && hand.assigned.size() > 1 && (lowers || raises)) {
    (lowers ? hand.ceiling : hand.floor) = hand.assigned.front().scale;
    hand.assigned.clear();
  }
  return hand;
}

std::optional<ScaleModel> make_scale_model(const TraceView& view, std::int64_t scaler) {
  const Seen seen(view, scaler);
  ScaleModel model;
  model.scaler = scaler;
  std::vector<bool> known;
  std::size_t alone = 0;
  for (const trace::ScalerUpdate* update : view.updates(scaler)) {
    if (update->assigned) continue;
    StepLimit limit;
    limit.step = update->step;
    const auto used = static_cast<double>(update->scale_before);
    if (update->found_inf != 0) {
      limit.skipped = true;
      limit.forced = no_scale_helps(view, update->step);
      limit.high = used;
      if (const double replayed = replayed_magnitude(view, update->step, used); !limit.forced && replayed > 0) {
        limit.high = std::min(limit.high, limit_of(replayed));
      }
      known.push_back(false);
    } else {
      const double kept = used * (1 + 0x1p-20);  // It did not overflow at the scale in use.
      limit.low = kept;
      limit.high = infinity;
      limit.scale = std::numeric_limits<double>::quiet_NaN();
      alone += seen.fill(limit, kept) ? 1 : 0;
      known.push_back(!std::isnan(limit.scale));
    }
    model.limits.push_back(limit);
  }
  model.slices = make_slices(view);
  if (model.limits.empty() || !seen.anything()) return std::nullopt;
  model.hand = programs_hand(view, scaler);
  for (const trace::ScalerUpdate* update : view.updates(scaler)) {
    if (update->assigned) continue;
    model.first_tracker = update->tracker_before;
    break;
  }
  interpolate(model.limits, known);
  model.measured = static_cast<double>(alone) / static_cast<double>(model.limits.size());
  return model;
}

}  // namespace ampscope::analyzers
