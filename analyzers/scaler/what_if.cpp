#include "analyzers/scaler/what_if.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace ampscope::analyzers {

namespace {

ScalerFactors factors(const ScalerSettings& settings) {
  return {settings.growth_factor, settings.backoff_factor, static_cast<std::int32_t>(settings.growth_interval)};
}

/// Goes through the updates of a scaler as the model and the program's own hand on the scale say.
class Walk {
 public:
  Walk(const ScaleModel& model, const ScalerSettings& settings)
      : hand_(model.hand),
        factors_(factors(settings)),
        state_{static_cast<float>(settings.init_scale), model.first_tracker} {}

  [[nodiscard]] float scale() const noexcept { return state_.scale; }

  void update(bool skip) {
    state_ = updated(state_, skip ? 1.0F : 0.0F, factors_);
    ++updates_;
    if (hand_.ceiling) state_.scale = std::min(state_.scale, *hand_.ceiling);
    if (hand_.floor) state_.scale = std::max(state_.scale, *hand_.floor);
    for (; assigned_ < hand_.assigned.size() && hand_.assigned[assigned_].updates <= updates_; ++assigned_)
      state_.scale = hand_.assigned[assigned_].scale;
  }

 private:
  const ProgramsHand& hand_;
  ScalerFactors factors_;
  ScalerState state_;
  std::size_t updates_ = 0;
  std::size_t assigned_ = 0;
};

enum class Reading : std::uint8_t { estimate, low, high, by_progress };

/// Updates of the recorded run by the number of steps taken before them: what the weights had gone through.
std::vector<std::size_t> first_with_progress(const std::vector<StepLimit>& limits) {
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    if (!limits[i].skipped) first.push_back(i);
  }
  return first;
}

std::int64_t count_skips(const ScaleModel& model, const ScalerSettings& settings, Reading reading) {
  Walk walk(model, settings);
  const std::vector<std::size_t> taken_at =
      reading == Reading::by_progress ? first_with_progress(model.limits) : std::vector<std::size_t>{};
  std::size_t taken = 0;
  std::int64_t skips = 0;
  for (const StepLimit& at : model.limits) {
    double limit = at.scale;
    if (reading == Reading::low) limit = at.low > 0 ? at.low : at.scale;
    if (reading == Reading::high) limit = at.high;
    if (reading == Reading::by_progress && !taken_at.empty()) {
      limit = model.limits[taken_at[std::min(taken, taken_at.size() - 1)]].scale;
    }
    const bool skip = at.forced || static_cast<double>(walk.scale()) >= limit;
    skips += skip ? 1 : 0;
    taken += skip ? 0 : 1;
    walk.update(skip);
  }
  return skips;
}

void add_details(const ScaleModel& model, const std::vector<float>& scales, Prediction& prediction) {
  std::map<std::int64_t, std::array<double, 3>> sums;  // elements, flushed, overflowed
  std::size_t update = 0;
  for (const FlushSlice& slice : model.slices) {
    while (update + 1 < model.limits.size() && model.limits[update].step < slice.first_step)
      ++update;
    const float scale = scales[update];
    if (!(scale > 0) || !std::isfinite(scale)) continue;
    const int log2_scale = static_cast<int>(std::lround(std::log2(static_cast<double>(scale))));
    const auto steps = static_cast<double>(slice.last_step - slice.first_step + 1);
    for (const ParameterFlush& parameter : slice.parameters) {
      auto& sum = sums[parameter.window->parameter];
      sum[0] += steps * static_cast<double>(parameter.window->stats.count);
      sum[1] += steps * parameter.lost(log2_scale);
      sum[2] += steps * parameter.overflowed(log2_scale);
    }
  }
  for (const auto& [parameter, sum] : sums)
    prediction.parameters.push_back({parameter, sum[1] / sum[0], sum[2] / sum[0]});
  std::stable_sort(prediction.parameters.begin(), prediction.parameters.end(),
                   [](const auto& a, const auto& b) { return a.flushed + a.overflowed > b.flushed + b.overflowed; });
}

}  // namespace

Prediction predict(const ScaleModel& model, const ScalerSettings& settings, const WhatIfOptions& options) {
  // So many good updates end the settling, as in analyze_skips.
  const std::int64_t quiet = std::min<std::int64_t>(20, std::max<std::int64_t>(settings.growth_interval, 1));
  Walk walk(model, settings);
  Prediction result;
  result.lowest_scale = settings.init_scale;
  std::vector<float> scales;
  std::size_t slice = 0;
  std::int64_t good = 0;
  bool settled = false;
  for (std::size_t i = 0; i < model.limits.size(); ++i) {
    const StepLimit& at = model.limits[i];
    const auto scale = static_cast<double>(walk.scale());
    const bool skip = at.forced || scale >= at.scale;
    double flushed = 0;
    if (!skip && !model.slices.empty()) {
      while (slice + 1 < model.slices.size() && model.slices[slice + 1].first_step <= at.step)
        ++slice;
      flushed = model.slices[slice].share_at(scale);
    }
    for (PredictedLoss* part : {&result.whole, &result.kept_back}) {
      if (part == &result.kept_back && i < options.kept_back_from) continue;
      part->updates += 1;
      part->skips += skip ? 1 : 0;
      part->flushed += flushed;
    }
    good = skip ? 0 : good + 1;
    if (!settled && skip) result.settled_after = static_cast<std::int64_t>(i) + 1;
    settled = settled || good >= quiet;
    const float before = walk.scale();
    walk.update(skip);
    const auto after = static_cast<double>(walk.scale());
    result.lowest_scale = std::min(result.lowest_scale, after);
    if (!options.details) continue;
    scales.push_back(before);
    auto& timeline = result.timeline;
    if (!skip && !timeline.empty() && !timeline.back().skipped && timeline.back().scale == scale) {
      timeline.back().last_step = at.step;
      timeline.back().scale_after = after;
    } else {
      ScalerTimelineEntry entry;
      entry.first_step = entry.last_step = at.step;
      entry.scale = scale;
      entry.scale_after = after;
      entry.skipped = skip;
      timeline.push_back(std::move(entry));
    }
  }
  result.final_scale = static_cast<double>(walk.scale());
  result.skips_low = result.skips_high = result.whole.skips;
  if (options.interval) {
    for (const Reading reading : {Reading::low, Reading::high, Reading::by_progress}) {
      const std::int64_t skips = count_skips(model, settings, reading);
      result.skips_low = std::min(result.skips_low, skips);
      result.skips_high = std::max(result.skips_high, skips);
    }
  }
  if (options.details) add_details(model, scales, result);
  return result;
}

}  // namespace ampscope::analyzers
