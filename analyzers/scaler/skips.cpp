#include "analyzers/scaler/skips.h"

#include <algorithm>
#include <cmath>

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

namespace {

constexpr std::size_t tail_updates = 20;  ///< looked at to see whether training still makes progress at the end
constexpr double most_skipped = 0.6;      ///< share of the updates in the second half of the run
constexpr std::size_t most_scattered_settling_skips = 4;

/// Index of the first update of the first stretch of `quiet` updates without a skip; updates.size() when there is none.
std::size_t settling_end(std::span<const trace::ScalerUpdate* const> updates, std::int64_t quiet) {
  std::int64_t good = 0;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    good = updates[i]->found_inf != 0 ? 0 : good + 1;
    if (good >= quiet) return i + 1 - static_cast<std::size_t>(quiet);
  }
  // A short run may end before that; its last stretch counts if it is longer than what came before.
  const auto start = updates.size() - static_cast<std::size_t>(good);
  return good > 0 && static_cast<std::size_t>(good) >= start ? start : updates.size();
}

/// The most powers of two that the scale came down from any value it had before, from `start` on.
double deepest_fall(std::span<const trace::ScalerUpdate* const> updates, std::size_t start) {
  double highest = 0;
  double fall = 0;
  for (const trace::ScalerUpdate* update : updates.subspan(start)) {
    highest = std::max(highest, static_cast<double>(update->scale_before));
    if (highest > 0) fall = std::max(fall, std::log2(highest / static_cast<double>(update->scale_after)));
  }
  return fall;
}

}  // namespace

std::int64_t SkipAnalysis::count(SkipKind kind) const noexcept {
  return std::count_if(skips.begin(), skips.end(), [&](const Skip& skip) { return skip.kind == kind; });
}

const Skip* SkipAnalysis::at_step(std::int64_t step) const noexcept {
  const auto found = std::find_if(skips.begin(), skips.end(), [&](const Skip& skip) { return skip.step == step; });
  return found != skips.end() ? &*found : nullptr;
}

SkipAnalysis analyze_skips(const TraceView& view, std::int64_t scaler, const SkipLimits& limits) {
  SkipAnalysis result;
  result.scaler = scaler;
  const auto updates = view.updates(scaler);
  result.updates = static_cast<std::int64_t>(updates.size());
  if (updates.empty()) return result;
  result.first_scale = updates.front()->scale_before;
  result.last_scale = updates.back()->scale_after;
  result.growth_interval = updates.front()->growth_interval;
  result.lowest_scale = result.first_scale;
  for (const trace::ScalerUpdate* update : updates) {
    result.lowest_scale = std::min(result.lowest_scale, static_cast<double>(update->scale_after));
  }

  // A scaler that tries a larger scale more often than that never has so many good updates.
  const std::int64_t quiet = std::min(limits.settled_after, std::max<std::int64_t>(result.growth_interval, 1));
  const std::size_t settled = settling_end(updates, quiet);
  const bool ever_settled = settled < updates.size();
  result.settled_scale = ever_settled ? updates[settled]->scale_before : result.first_scale;
  if (ever_settled) result.settled_step = updates[settled]->step;

  std::size_t scattered = 0;  // settling skips with a good update just before them
  std::size_t previous = 0;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const trace::ScalerUpdate& update = *updates[i];
    if (update.found_inf == 0) continue;
    Skip skip{update.step, i, update.scale_before, update.scale_after, SkipKind::isolated};
    const bool first = result.skips.empty();
    if (view.outcome(update.step).loss_nonfinite) {
      skip.kind = SkipKind::forced;
    } else if (i < settled) {
      if (i > 0 && updates[i - 1]->found_inf == 0) ++scattered;
      const bool in_bounds =
          scattered <= most_scattered_settling_skips && skip.scale_after >= std::min(1.0, result.first_scale / 2);
      skip.kind = in_bounds ? SkipKind::settling : SkipKind::isolated;
    } else if (const std::size_t distance = first ? i : i - previous;
               distance >= static_cast<std::size_t>(std::max<std::int64_t>(update.growth_interval, 1))) {
      skip.kind = SkipKind::probe;
    }
    result.skips.push_back(skip);
    previous = i;
  }

  // Skips that neither settling nor probing explains: few are chance, many are a collapse.
  std::vector<std::size_t> unexplained;
  for (std::size_t i = 0; i < result.skips.size(); ++i) {
    if (result.skips[i].kind == SkipKind::isolated || result.skips[i].kind == SkipKind::forced)
      unexplained.push_back(i);
  }
  if (!unexplained.empty()) {
    const std::size_t first = result.skips[unexplained.front()].update;
    const std::size_t last = result.skips[unexplained.back()].update;
    const double period = unexplained.size() > 1
                              ? static_cast<double>(last - first) / static_cast<double>(unexplained.size() - 1)
                              : static_cast<double>(updates.size());
    const double fall = deepest_fall(updates, ever_settled ? settled : first);
    const bool too_close = period < static_cast<double>(result.growth_interval) / 2;
    if (static_cast<std::int64_t>(unexplained.size()) >= limits.min_skips && fall >= limits.min_fall && too_close) {
      result.collapsed = true;
      result.skip_period = period;
    }
  }
  const std::size_t tail = std::min(tail_updates, updates.size());
  const auto skipped_at_end =
      static_cast<std::size_t>(std::count_if(updates.end() - static_cast<std::ptrdiff_t>(tail), updates.end(),
                                             [](const trace::ScalerUpdate* update) { return update->found_inf != 0; }));
  const bool nothing_but_skips = tail >= 8 && skipped_at_end == tail;
  if (nothing_but_skips && !ever_settled) {
    // Not one good update: no scale was found at all.
    result.collapsed = true;
    result.skip_period = 1;
    for (Skip& skip : result.skips) {
      if (skip.kind == SkipKind::settling) skip.kind = SkipKind::collapse;
    }
  }
  if (result.collapsed) {
    for (const std::size_t i : unexplained) {
      if (result.skips[i].kind == SkipKind::isolated) result.skips[i].kind = SkipKind::collapse;
    }
    result.hopeless = result.last_scale < std::min(1.0, result.first_scale) || 2 * skipped_at_end >= tail;
  }
  if (!result.collapsed && updates.size() >= 2 * tail_updates) {
    // A probe for each growth is healthy; more skips than steps are not, however evenly they come.
    const auto late = updates.subspan(updates.size() / 2);
    const auto skipped = std::count_if(late.begin(), late.end(), [&](const trace::ScalerUpdate* update) {
      return update->found_inf != 0 && !view.outcome(update->step).loss_nonfinite;
    });
    const auto taken = static_cast<std::ptrdiff_t>(late.size()) - skipped;
    result.saw_tooth = taken > 0 && static_cast<double>(skipped) >= most_skipped * static_cast<double>(late.size());
    if (result.saw_tooth) result.skip_period = static_cast<double>(late.size()) / static_cast<double>(skipped);
  }
  return result;
}

}  // namespace ampscope::analyzers
