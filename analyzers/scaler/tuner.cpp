#include "analyzers/scaler/tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"

namespace ampscope::analyzers {

namespace {

/// Differences of the measure below this are not worth a change: one step in ten thousand.
constexpr double indifferent = 1e-4;
/// Share of a step's gradients that must be kept for a scale to fit it.
constexpr double notable_loss = 0.05;

ScaleModel first_part(const ScaleModel& model, std::size_t updates) {
  ScaleModel part;
  part.scaler = model.scaler;
  part.first_tracker = model.first_tracker;
  part.hand = model.hand;
  part.limits.assign(model.limits.begin(), model.limits.begin() + static_cast<std::ptrdiff_t>(updates));
  for (const FlushSlice& slice : model.slices) {
    if (slice.first_step > part.limits.back().step) break;
    FlushSlice light;
    light.first_step = slice.first_step;
    light.last_step = slice.last_step;
    light.elements = slice.elements;
    light.share = slice.share;
    part.slices.push_back(std::move(light));
  }
  return part;
}

double measure(const ScaleModel& model, const ScalerSettings& settings) {
  return predict(model, settings).whole.lost();
}

/// The smallest limit of the updates that a scale could have kept; infinite without one.
double tightest(const ScaleModel& model) {
  double limit = std::numeric_limits<double>::infinity();
  for (const StepLimit& at : model.limits) {
    if (!at.forced) limit = std::min(limit, at.scale);
  }
  return limit;
}

bool gradients_known(const ScaleModel& model) {
  return std::any_of(model.slices.begin(), model.slices.end(), [](const FlushSlice& slice) {
    return !slice.parameters.empty() ||
           std::any_of(slice.share.begin(), slice.share.end(), [](double share) { return share > 0; });
  });
}

/// Settings can be chosen when a step was taken, and its gradients or the largest value of its backward pass are known.
bool can_choose(const ScaleModel& model) {
  const bool taken = std::any_of(model.limits.begin(), model.limits.end(), [](const auto& at) { return !at.skipped; });
  return taken && (gradients_known(model) || std::isfinite(tightest(model)));
}

/// Without gradients nothing tells what a smaller scale flushes to zero. So that none is proposed that nothing speaks
/// for, what lies far below the limit counts as lost.
ScaleModel guarded(const ScaleModel& model) {
  constexpr double far_below = 16;
  if (gradients_known(model) || model.limits.empty()) return model;
  ScaleModel result = model;
  FlushSlice slice;
  slice.first_step = model.limits.front().step;
  slice.last_step = model.limits.back().step;
  slice.elements = 1;
  for (std::size_t i = 0; i < FlushSlice::scales; ++i) {
    const double scale = std::exp2(FlushSlice::lowest_log2 + static_cast<int>(i));
    slice.share[i] = scale < tightest(model) / far_below ? 1 : 0;
  }
  result.slices = {slice};
  return result;
}

/// The init_scale that loses least. Where several do, half of the largest, as far from overflowing as the scaler itself
/// stays after a skip; and today's if it is one of them.
double best_init(const ScaleModel& model, const ScalerSettings& today) {
  std::vector<std::pair<double, double>> tried;  // measure, scale
  double best = measure(model, today);
  tried.emplace_back(best, today.init_scale);
  // Where nothing was seen to come near the limit, a start far beyond the usual ones has nothing to show for itself.
  const double limit = tightest(model);
  const int highest = std::isfinite(limit) ? 40 : 24;
  // A start far below what the tightest step allows loses the same steps, only later: it has yet to grow there.
  constexpr double needless = 1.0 / 16;
  const double lowest = std::isfinite(limit) ? std::min(limit * needless, today.init_scale) : 0;
  for (int power = -8; power <= highest; ++power) {
    ScalerSettings settings = today;
    settings.init_scale = std::exp2(power);
    if (settings.init_scale < lowest) continue;
    tried.emplace_back(measure(model, settings), settings.init_scale);
    best = std::min(best, tried.back().first);
  }
  if (tried.front().first <= best + indifferent) return today.init_scale;
  std::vector<double> good;
  for (const auto& [lost, scale] : tried) {
    if (lost <= best + indifferent) good.push_back(scale);
  }
  std::sort(good.begin(), good.end());
  const double half = good.back() / 2;
  return std::find(good.begin(), good.end(), half) != good.end() ? half : good.back();
}

ScalerSettings search(const ScaleModel& model, const ScalerSettings& today) {
  ScalerSettings chosen = today;
  chosen.init_scale = best_init(model, today);
  double best = measure(model, chosen);
  const auto try_out = [&](const ScalerSettings& settings) {
    // Each further setting that is changed must earn it.
    const double lost = measure(model, settings);
    if (lost < best - indifferent) {
      best = lost;
      chosen = settings;
    }
  };
  const auto updates = static_cast<std::int64_t>(model.limits.size());
  for (const double growth : {today.growth_factor, 2.0, 1.5, 4.0}) {
    for (const std::int64_t interval :
         {today.growth_interval, std::int64_t{2000}, std::int64_t{1000}, std::int64_t{500}, std::int64_t{200},
          std::int64_t{100}, std::int64_t{5000}, std::int64_t{10000}}) {
      // An interval that the run is too short to show is no better than another such.
      if (interval != today.growth_interval && interval > updates && today.growth_interval > updates) continue;
      for (const double backoff : {today.backoff_factor, 0.5, 0.25}) {
        ScalerSettings settings = chosen;
        settings.growth_factor = growth;
        settings.growth_interval = interval;
        settings.backoff_factor = backoff;
        try_out(settings);
      }
    }
  }
  ScalerSettings again = chosen;
  again.init_scale = best_init(model, chosen);
  try_out(again);
  return chosen;
}

bool equal(const ScalerSettings& a, const ScalerSettings& b) {
  return a.init_scale == b.init_scale && a.growth_factor == b.growth_factor && a.backoff_factor == b.backoff_factor &&
         a.growth_interval == b.growth_interval;
}

/// Largest power of two below which nothing of these steps overflows.
double largest_power_below(double limit) {
  if (!std::isfinite(limit)) return 0x1p24;
  return limit > 0 ? std::exp2(std::ceil(std::log2(limit)) - 1) : 0;
}

std::optional<NoScaleFits> no_scale_fits(const ScaleModel& model) {
  const auto all = static_cast<double>(model.limits.size());
  const auto forced = static_cast<double>(
      std::count_if(model.limits.begin(), model.limits.end(), [](const StepLimit& limit) { return limit.forced; }));
  if (forced > all / 2) {
    NoScaleFits result;
    result.forward = true;
    result.share_of_steps = forced / all;
    return result;
  }

  // Stretches of steps in which the largest scale that fits still flushes a notable share.
  double steps = 0;
  double bad_steps = 0;
  double lost = 0;
  std::vector<double> largest;
  std::map<std::int64_t, std::array<double, 3>> by_parameter;  // elements, lost, overflowed
  std::set<std::int64_t> zero_parameters;
  double range = 0;
  std::size_t update = 0;
  for (const FlushSlice& slice : model.slices) {
    while (update + 1 < model.limits.size() && model.limits[update].step < slice.first_step)
      ++update;
    const StepLimit& limit = model.limits[update];
    const auto weight = static_cast<double>(slice.last_step - slice.first_step + 1);
    steps += weight;
    if (limit.forced || !std::isfinite(limit.scale)) continue;
    const double scale = largest_power_below(limit.scale);
    const double share = slice.share_at(scale);
    if (share < notable_loss) continue;
    bad_steps += weight;
    lost += weight * share;
    largest.push_back(scale);
    const int power = static_cast<int>(std::lround(std::log2(scale)));
    int smallest = std::numeric_limits<int>::max();
    for (const ParameterFlush& parameter : slice.parameters) {
      auto& sum = by_parameter[parameter.window->parameter];
      sum[0] += static_cast<double>(parameter.window->stats.count);
      sum[1] += parameter.lost(power);
      if (parameter.all_zero) {
        zero_parameters.insert(parameter.window->parameter);
      } else {
        smallest = std::min(smallest, parameter.window->stats.exponents.first);
      }
    }
    if (smallest < std::numeric_limits<int>::max()) range = std::max(range, 16 - power - static_cast<double>(smallest));
  }
  if (steps == 0 || bad_steps <= steps / 2) return std::nullopt;
  NoScaleFits result;
  result.share_of_steps = bad_steps / steps;
  result.lost = lost / bad_steps;
  result.range = range;
  result.all_zero = static_cast<std::int64_t>(zero_parameters.size());
  std::nth_element(largest.begin(), largest.begin() + static_cast<std::ptrdiff_t>(largest.size() / 2), largest.end());
  result.largest_scale = largest[largest.size() / 2];
  for (const auto& [parameter, sum] : by_parameter) {
    if (sum[1] > 0) result.parameters.push_back({parameter, sum[1] / sum[0], 0});
  }
  std::stable_sort(result.parameters.begin(), result.parameters.end(),
                   [](const auto& a, const auto& b) { return a.flushed > b.flushed; });
  if (result.parameters.size() > 5) result.parameters.resize(5);
  return result;
}

std::string what_changes(const ScaleModel& model, const ScalerSettings& from, const ScalerSettings& to) {
  const Prediction before = predict(model, from);
  const Prediction after = predict(model, to);
  const std::int64_t skips = before.whole.skips - after.whole.skips;
  if (skips > 0) return fmt::format("it saves {} of {}", plural(skips, "skipped step"), count_of(before.whole.skips));
  const double flushed = before.whole.flushed_share() - after.whole.flushed_share();
  if (flushed > 0) {
    return fmt::format("gradient elements flushed to zero fall from {} to {}", share(before.whole.flushed_share()),
                       share(after.whole.flushed_share()));
  }
  return fmt::format("what is lost falls from {} to {} of all gradient elements", share(before.whole.lost()),
                     share(after.whole.lost()));
}

void explain(const ScaleModel& model, Tuning& tuning) {
  const ScalerSettings& today = tuning.today;
  const ScalerSettings& to = tuning.recommended;
  if (!can_choose(model)) {
    const char* const reason = "kept: no gradient that fp16 can hold was recorded, so there is nothing to choose it by";
    tuning.choices = {{"init_scale", today.init_scale, to.init_scale, reason},
                      {"growth_factor", today.growth_factor, to.growth_factor, reason},
                      {"backoff_factor", today.backoff_factor, to.backoff_factor, reason},
                      {"growth_interval", static_cast<double>(today.growth_interval),
                       static_cast<double>(to.growth_interval), reason}};
    return;
  }
  const double limit = tightest(model);
  {
    ScalerSettings without = to;
    without.init_scale = today.init_scale;
    SettingChoice choice{"init_scale", today.init_scale, to.init_scale, {}};
    if (to.init_scale != today.init_scale) {
      choice.reason = fmt::format("starting at {} instead of {}: {}", scale(to.init_scale), scale(today.init_scale),
                                  what_changes(model, without, to));
    } else if (std::isfinite(limit) && limit < today.init_scale) {
      choice.reason =
          fmt::format("the tightest step overflows from {}; another start would not lose less", scale(limit));
    } else if (std::isfinite(limit)) {
      choice.reason = fmt::format("{} times below the {} from which the tightest step overflows",
                                  number(std::floor(limit / today.init_scale)), scale(limit));
    } else {
      choice.reason = "no value of the backward pass comes near fp16's limit";
    }
    tuning.choices.push_back(std::move(choice));
  }
  const auto add = [&](const char* name, double ScalerSettings::* member, const std::string& kept) {
    SettingChoice choice{name, today.*member, to.*member, kept};
    if (to.*member != today.*member) {
      ScalerSettings without = to;
      without.*member = today.*member;
      choice.reason = fmt::format("{} instead of {}: {}", number(to.*member), number(today.*member),
                                  what_changes(model, without, to));
    }
    tuning.choices.push_back(std::move(choice));
  };
  const std::string no_gain = fmt::format("no other value tried gains one step in {}", count_of(10'000));
  add("growth_factor", &ScalerSettings::growth_factor, no_gain);
  add("backoff_factor", &ScalerSettings::backoff_factor, no_gain);
  SettingChoice interval{"growth_interval", static_cast<double>(today.growth_interval),
                         static_cast<double>(to.growth_interval), no_gain};
  if (to.growth_interval != today.growth_interval) {
    ScalerSettings without = to;
    without.growth_interval = today.growth_interval;
    interval.reason = fmt::format("{} instead of {}: {}", count_of(to.growth_interval), count_of(today.growth_interval),
                                  what_changes(model, without, to));
  } else if (static_cast<std::int64_t>(model.limits.size()) < today.growth_interval) {
    interval.reason = fmt::format("the run is {} long, too short to show what another interval does",
                                  plural(static_cast<std::int64_t>(model.limits.size()), "update"));
  }
  tuning.choices.push_back(std::move(interval));
}

}  // namespace

std::optional<ScalerSettings> recorded_settings(const TraceView& view, std::int64_t scaler) {
  for (const trace::ScalerUpdate* update : view.updates(scaler)) {
    if (update->assigned) continue;
    return ScalerSettings{static_cast<double>(update->scale_before), update->growth_factor, update->backoff_factor,
                          update->growth_interval};
  }
  return std::nullopt;
}

Tuning tune(const ScaleModel& model, const ScalerSettings& today) {
  constexpr std::size_t enough_to_keep_back = 30;
  Tuning tuning;
  tuning.scaler = model.scaler;
  tuning.today = tuning.recommended = today;
  tuning.measured = model.measured;
  tuning.actual_skips =
      std::count_if(model.limits.begin(), model.limits.end(), [](const auto& at) { return at.skipped; });
  const std::size_t updates = model.limits.size();
  tuning.kept_back_from = updates >= enough_to_keep_back ? updates - updates / 3 : updates;
  tuning.no_scale_fits = no_scale_fits(model);
  const WhatIfOptions compare{.kept_back_from = tuning.kept_back_from};
  const Prediction now = predict(model, today, compare);
  tuning.can_choose = can_choose(model);
  // Where no scale fits, settings that skip less only flush more.
  const ScalerSettings found = tuning.can_choose && !tuning.no_scale_fits
                                   ? search(first_part(guarded(model), tuning.kept_back_from), today)
                                   : today;
  // Where what was found does not hold to the end, the start alone may.
  ScalerSettings start = today;
  start.init_scale = found.init_scale;
  for (const ScalerSettings& settings : {found, start}) {
    if (equal(settings, today)) continue;
    const Prediction then = predict(model, settings, compare);
    const bool better = then.whole.lost() < now.whole.lost() - indifferent;
    const bool worse_later = then.kept_back.lost() > now.kept_back.lost();
    if (!better || worse_later) continue;
    tuning.recommended = settings;
    break;
  }
  tuning.changed = !equal(tuning.recommended, today);
  const WhatIfOptions full{.kept_back_from = tuning.kept_back_from, .interval = true, .details = true};
  tuning.predicted_today = predict(model, today, full);
  tuning.predicted_recommended = tuning.changed ? predict(model, tuning.recommended, full) : tuning.predicted_today;
  explain(model, tuning);
  return tuning;
}

std::optional<Tuning> tune(const TraceView& view, std::int64_t scaler) {
  const auto today = recorded_settings(view, scaler);
  const auto model = today ? make_scale_model(view, scaler) : std::nullopt;
  return model ? std::optional(tune(*model, *today)) : std::nullopt;
}

std::string summary(const Tuning& tuning) {
  if (!tuning.can_choose) return "no gradient that fp16 can hold was recorded to choose settings by";
  if (tuning.no_scale_fits) return "no loss scale fits, so no settings help";
  const double before = tuning.predicted_today.whole.lost();
  const double after = tuning.predicted_recommended.whole.lost();
  if (!tuning.changed)
    return fmt::format("no other settings lose less than today's {} of the gradient elements", share(before));
  return fmt::format("{} of the gradient elements would be lost instead of {}; skipped steps {} instead of {}",
                     share(after), share(before), count_of(tuning.predicted_recommended.whole.skips),
                     count_of(tuning.predicted_today.whole.skips));
}

}  // namespace ampscope::analyzers
