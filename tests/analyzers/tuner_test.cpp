// Predictions for other settings, and what is recommended from them.
#include "analyzers/scaler/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzers/core/gradient_loss.h"
#include "analyzers/scaler/tuning_report.h"
#include "trace/series.h"

namespace ampscope::analyzers {
namespace {

/// Gradients as a random walk of their largest magnitude, with outliers and steps that no scale helps.
struct Stream {
  std::vector<double> largest;  ///< unscaled, by step
  std::vector<bool> forced;
  std::vector<double> width;  ///< powers of two that the bulk lies below the largest
};

Stream random_stream(std::mt19937& random, std::size_t steps) {
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  Stream stream;
  double level = -20 + 30 * uniform(random);
  const double drift = normal(random) * 0.02;
  const double noise = uniform(random);
  const double outliers = uniform(random) < 0.5 ? 0.02 : 0;
  const double forced = uniform(random) < 0.3 ? 0.05 : 0;
  const double width = 40 * uniform(random);
  for (std::size_t i = 0; i < steps; ++i) {
    level += drift;
    const double jump = uniform(random) < outliers ? 8 * uniform(random) : 0;
    stream.largest.push_back(std::exp2(std::clamp(level + noise * normal(random) + jump, -60.0, 30.0)));
    stream.forced.push_back(uniform(random) < forced);
    stream.width.push_back(width);
  }
  return stream;
}

ScaleModel model_of(const Stream& stream) {
  ScaleModel model;
  for (std::size_t i = 0; i < stream.largest.size(); ++i) {
    StepLimit limit;
    limit.step = static_cast<std::int64_t>(i);
    limit.scale = limit.low = limit.high = overflows_from / stream.largest[i];
    limit.forced = stream.forced[i];
    model.limits.push_back(limit);
    if (i % 10 != 0) continue;
    FlushSlice slice;
    slice.first_step = limit.step;
    slice.last_step = limit.step + 9;
    slice.elements = 1000;
    for (std::size_t k = 0; k < FlushSlice::scales; ++k) {
      const double room = std::log2(stream.largest[i]) + FlushSlice::lowest_log2 + static_cast<double>(k) + 25;
      slice.share[k] = std::clamp(1 - room / std::max(stream.width[i], 1.0), 0.0, 1.0);
    }
    model.slices.push_back(std::move(slice));
  }
  model.measured = 1;
  return model;
}

/// The same run stepped through by hand: an independent account of what is lost.
double lost_by_hand(const Stream& stream, const ScalerSettings& settings) {
  float scale = static_cast<float>(settings.init_scale);
  std::int64_t tracker = 0;
  double lost = 0;
  std::size_t slice = 0;
  for (std::size_t i = 0; i < stream.largest.size(); ++i) {
    if (i % 10 == 0) slice = i;
    const double s = static_cast<double>(scale);
    if (stream.forced[i] || stream.largest[i] * s >= overflows_from * (1 - 1e-12)) {
      lost += 1;
      scale = static_cast<float>(s * settings.backoff_factor);
      tracker = 0;
      continue;
    }
    const double at = std::clamp(std::log2(s), -32.0, 95.0);
    const auto share = [&](double power) {
      const double room = std::log2(stream.largest[slice]) + power + 25;
      return std::clamp(1 - room / std::max(stream.width[slice], 1.0), 0.0, 1.0);
    };
    const double low = std::floor(at);
    lost += s > 0 ? share(low) * (1 - (at - low)) + share(std::min(low + 1, 95.0)) * (at - low) : 1;
    if (++tracker == settings.growth_interval) {
      const auto grown = static_cast<float>(s * settings.growth_factor);
      if (std::isfinite(grown)) scale = grown;
      tracker = 0;
    }
  }
  return lost / static_cast<double>(stream.largest.size());
}

ScalerSettings random_settings(std::mt19937& random) {
  std::uniform_int_distribution<int> power(0, 30);
  const std::vector<double> growth = {1.1, 1.5, 2, 4};
  const std::vector<double> backoff = {0.1, 0.5, 0.75};
  const std::vector<std::int64_t> interval = {1, 5, 50, 500, 2000, 5000};
  const auto pick = [&](const auto& list) { return list[random() % list.size()]; };
  return {std::exp2(power(random)), pick(growth), pick(backoff), pick(interval)};
}

TEST(WhatIf, CountsAsSteppingThroughTheRunDoes) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 60; ++trial) {
    const Stream stream = random_stream(random, 300);
    const ScalerSettings settings = random_settings(random);
    EXPECT_NEAR(predict(model_of(stream), settings).whole.lost(), lost_by_hand(stream, settings), 1e-6) << trial;
  }
}

TEST(WhatIf, ShowsTheTimelineThatItCounts) {
  Stream stream;
  stream.largest.assign(40, 1.0);  // fits below 65520
  stream.largest[20] = 16.0;       // fits below 4095
  stream.forced.assign(40, false);
  stream.width.assign(40, 1.0);
  const Prediction prediction =
      predict(model_of(stream), {0x1p18, 2, 0.5, 10}, {.kept_back_from = 10, .interval = true, .details = true});
  // 2^18, 2^17 and 2^16 are too much; 2^15 holds for ten steps, 2^16 is tried and refused, and so on.
  std::vector<std::int64_t> skipped;
  for (const ScalerTimelineEntry& entry : prediction.timeline) {
    if (entry.skipped) skipped.push_back(entry.first_step);
  }
  EXPECT_THAT(skipped, ::testing::ElementsAre(0, 1, 2, 13, 20));
  EXPECT_EQ(prediction.whole.skips, 5);
  EXPECT_EQ(prediction.kept_back.updates, 30);
  EXPECT_EQ(prediction.kept_back.skips, 2);
  EXPECT_EQ(prediction.final_scale, 0x1p15);
  EXPECT_LE(prediction.skips_low, 5);
  EXPECT_GE(prediction.skips_high, 5);
}

TEST(WhatIf, GrowthByOneAndAHalfIsNotGrowthByTwo) {
  Stream stream;
  stream.largest.assign(20'000, 0.5);  // overflows from 131040
  stream.forced.assign(20'000, false);
  stream.width.assign(20'000, 1.0);
  const ScaleModel model = model_of(stream);
  // By two: 65536 grows to 131072 after 2000 updates, is refused, and so once in 2001 updates.
  EXPECT_EQ(predict(model, {65536, 2, 0.5, 2000}).whole.skips, 9);
  // By one and a half: 98304 after 5000 updates, 147456 refused after 10000, and 73728 grows to 110592 after 15001.
  EXPECT_EQ(predict(model, {65536, 1.5, 0.5, 5000}).whole.skips, 1);
}

TEST(Tuner, NeverRecommendsWhatLosesMore) {
  std::mt19937 random(11);
  int changed = 0;
  for (int trial = 0; trial < 120; ++trial) {
    const Stream stream = random_stream(random, 60 + random() % 400);
    const ScalerSettings today = random_settings(random);
    const Tuning tuning = tune(model_of(stream), today);
    const double before = lost_by_hand(stream, today);
    const double after = lost_by_hand(stream, tuning.recommended);
    EXPECT_LE(after, before + 1e-9) << trial;
    EXPECT_LE(tuning.predicted_recommended.kept_back.lost(), tuning.predicted_today.kept_back.lost() + 1e-12) << trial;
    changed += tuning.changed ? 1 : 0;
    EXPECT_EQ(tuning.choices.size(), 4U);
    for (const SettingChoice& choice : tuning.choices)
      EXPECT_NE(choice.reason, "");
  }
  EXPECT_GT(changed, 40);  // it is not that nothing is ever recommended
}

TEST(Tuner, StartsWhereTheScaleWouldSettle) {
  Stream stream;
  stream.largest.assign(300, 64.0);  // overflows from 1023.75
  stream.forced.assign(300, false);
  stream.width.assign(300, 20.0);
  const Tuning tuning = tune(model_of(stream), {0x1p24, 2, 0.5, 2000});
  ASSERT_TRUE(tuning.changed);
  EXPECT_LE(tuning.recommended.init_scale, 512);
  EXPECT_GE(tuning.recommended.init_scale, 1);
  EXPECT_EQ(tuning.recommended.growth_interval, 2000);
  EXPECT_EQ(tuning.predicted_today.whole.skips, 15);
  EXPECT_EQ(tuning.predicted_recommended.whole.skips, 0);
  EXPECT_THAT(tuning.choices[0].reason, ::testing::HasSubstr("15"));
  EXPECT_FALSE(tuning.no_scale_fits);
}

TEST(Tuner, KeepsSettingsThatLoseNothing) {
  Stream stream;
  stream.largest.assign(300, 0x1p-6);
  stream.forced.assign(300, false);
  stream.width.assign(300, 4.0);
  const Tuning tuning = tune(model_of(stream), {65536, 2, 0.5, 2000});
  EXPECT_FALSE(tuning.changed);
  EXPECT_EQ(tuning.recommended.init_scale, 65536);
}

TEST(Tuner, ChoosesNothingWhereNoGradientsWereRecorded) {
  std::mt19937 random(3);
  for (const bool skipped : {false, true}) {
    ScaleModel model = model_of(random_stream(random, 200));
    for (std::size_t i = 0; i < model.limits.size(); ++i)
      model.limits[i].skipped = skipped || i < 60;
    if (!skipped) {
      model.slices.clear();
      for (StepLimit& limit : model.limits)
        limit.scale = limit.low = limit.high = std::numeric_limits<double>::infinity();
    }
    const Tuning tuning = tune(model, {65536, 2, 0.5, 2000});
    EXPECT_FALSE(tuning.can_choose);
    EXPECT_FALSE(tuning.changed);
    EXPECT_EQ(tuning.recommended.init_scale, 65536);
    ASSERT_EQ(tuning.choices.size(), 4U);
    EXPECT_THAT(tuning.choices[0].reason, testing::HasSubstr("nothing to choose it by"));
    EXPECT_THAT(summary(tuning), testing::HasSubstr("recorded to choose settings by"));
  }
}

TEST(Tuner, StaysNearTheLimitWhereNoGradientsWereRecorded) {
  ScaleModel model;
  for (std::int64_t i = 0; i < 200; ++i) {
    StepLimit limit;
    limit.step = i;
    limit.scale = limit.low = limit.high = 3000;
    model.limits.push_back(limit);
  }
  const Tuning tuning = tune(model, {0x1p30, 2, 0.5, 4});
  EXPECT_TRUE(tuning.can_choose);
  EXPECT_TRUE(tuning.changed);
  EXPECT_GE(tuning.recommended.init_scale, 128);
  EXPECT_LE(tuning.recommended.init_scale, 2048);
}

TEST(Tuner, SaysThatNoScaleFits) {
  Stream wide;
  wide.largest.assign(100, 1024.0);
  wide.forced.assign(100, false);
  wide.width.assign(100, 60.0);  // a bulk sixty powers of two wide: fp16 holds forty
  const Tuning tuning = tune(model_of(wide), {65536, 2, 0.5, 2000});
  ASSERT_TRUE(tuning.no_scale_fits);
  EXPECT_FALSE(tuning.no_scale_fits->forward);
  EXPECT_EQ(tuning.no_scale_fits->largest_scale, 32);
  EXPECT_GT(tuning.no_scale_fits->lost, 0.3);

  Stream hopeless = wide;
  hopeless.width.assign(100, 5.0);
  std::fill(hopeless.forced.begin() + 20, hopeless.forced.end(), true);
  const Tuning forced = tune(model_of(hopeless), {65536, 2, 0.5, 2000});
  ASSERT_TRUE(forced.no_scale_fits);
  EXPECT_TRUE(forced.no_scale_fits->forward);
}

TEST(Tuner, WritesLinesToPaste) {
  EXPECT_EQ(python_line({0x1p12, 2, 0.5, 500}, "cuda"),
            "scaler = torch.amp.GradScaler(\"cuda\", init_scale=2.0**12, growth_interval=500)");
  EXPECT_EQ(python_line({65536, 1.5, 0.25, 2000}, "cpu"),
            "scaler = torch.amp.GradScaler(\"cpu\", growth_factor=1.5, backoff_factor=0.25)");
  EXPECT_EQ(cpp_line({8, 2, 0.5, 500}), "executor::GradScaler scaler({.init_scale = 8.0, .growth_interval = 500});");
  EXPECT_EQ(cpp_line({0x1p12, 2, 0.5, 2000}), "executor::GradScaler scaler({.init_scale = 0x1p12});");
}

TEST(Tuner, WritesWhatToChangeInACheckpoint) {
  Tuning tuning;
  tuning.today = {65536, 2, 0.5, 2000};
  tuning.recommended = {0x1p12, 2, 0.5, 500};
  tuning.changed = true;
  EXPECT_EQ(python_line(tuning, true, "cuda"),
            "state.update(scale=2.0**12, growth_interval=500); scaler.load_state_dict(state)");
  EXPECT_EQ(cpp_line(tuning, true),
            "state.scale = 0x1p12; state.growth_interval = 500; scaler.load_state_dict(state);");
  EXPECT_EQ(python_line(tuning, false, "cuda"), python_line(tuning.recommended, "cuda"));
  // What is not changed leaves the checkpoint as it is, also where its settings are not torch's defaults.
  tuning.today.growth_factor = tuning.recommended.growth_factor = 1.5;
  EXPECT_EQ(python_line(tuning, true, "cuda"),
            "state.update(scale=2.0**12, growth_interval=500); scaler.load_state_dict(state)");
}

/// A run on disk would hold the same: updates, one series and gradients. The program lowers a scale beyond `ceiling` to
/// it after each update.
trace::Trace recorded(const std::vector<double>& largest, const ScalerSettings& settings,
                      float ceiling = std::numeric_limits<float>::infinity(), std::int32_t tracker = 0) {
  trace::Trace trace;
  trace.run.devices = {"cpu"};
  trace::Scaler scaler;
  scaler.id = 0;
  scaler.implementation = "torch.amp.GradScaler";
  scaler.source = {"train.py", 46, ""};
  trace.scalers.push_back(std::move(scaler));
  ScalerState state{static_cast<float>(settings.init_scale), tracker};
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i);
    const bool skip = largest[i] * static_cast<double>(state.scale) >= overflows_from;
    trace::ScalerUpdate update{step,
                               0,
                               state.scale,
                               0,
                               state.tracker,
                               0,
                               skip ? 1.0F : 0.0F,
                               settings.growth_factor,
                               settings.backoff_factor,
                               static_cast<std::int32_t>(settings.growth_interval),
                               false};
    state = updated(state, update.found_inf, factors_of(update));
    update.scale_after = state.scale;
    update.tracker_after = state.tracker;
    trace.scaler_updates.push_back(update);
    if (state.scale > ceiling) {
      trace::ScalerUpdate lowered = update;
      lowered.scale_before = state.scale;
      lowered.tracker_before = lowered.tracker_after;
      lowered.scale_after = state.scale = ceiling;
      lowered.found_inf = 0;
      lowered.assigned = true;
      trace.scaler_updates.push_back(lowered);
    }
    trace::SeriesPoint point{
        trace::backward_absmax_series, 0, step, step, 1, skip ? 1 : 0, largest[i], largest[i], largest[i]};
    if (skip) point.mean = point.min = point.max = std::nan("");
    trace.series.push_back(point);
  }
  return trace;
}

TEST(ScaleModel, PredictsARunFromAnotherOfTheSameGradients) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  std::vector<double> largest;
  for (int i = 0; i < 500; ++i)
    largest.push_back(std::exp2(-6 + normal(random)));
  const trace::Trace quiet = recorded(largest, {0x1p10, 2, 0.5, 100'000});  // nothing overflows: all is measured
  const TraceView view(quiet);
  const auto model = make_scale_model(view, 0);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->measured, 1);
  for (const ScalerSettings& settings :
       {ScalerSettings{0x1p24, 2, 0.5, 20}, ScalerSettings{0x1p16, 1.5, 0.5, 7}, ScalerSettings{3e6, 2, 0.3, 11}}) {
    const trace::Trace actual = recorded(largest, settings);
    const auto skips = std::count_if(actual.scaler_updates.begin(), actual.scaler_updates.end(),
                                     [](const trace::ScalerUpdate& update) { return update.found_inf != 0; });
    EXPECT_EQ(predict(*model, settings).whole.skips, skips);
  }
}

TEST(ScaleModel, ReproducesTheRunItWasMadeFrom) {
  std::mt19937 random(6);
  std::normal_distribution<double> normal;
  std::vector<double> largest;
  for (int i = 0; i < 500; ++i)
    largest.push_back(std::exp2(-3 + 0.02 * i + normal(random)));
  const ScalerSettings settings{0x1p22, 2, 0.5, 15};
  const trace::Trace trace = recorded(largest, settings);
  const TraceView view(trace);
  const auto reports = report_tuning(view, {.growth_factor = 1.5});
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].tuning.predicted_today.whole.skips, reports[0].tuning.actual_skips);
  ASSERT_TRUE(reports[0].asked);
  EXPECT_EQ(reports[0].asked->settings.growth_factor, 1.5);
  EXPECT_EQ(reports[0].asked->settings.init_scale, 0x1p22);
  EXPECT_EQ(reports[0].source, "train.py:46");
  EXPECT_THAT(reports[0].disagreements, ::testing::IsEmpty());
}

std::vector<double> noisy(unsigned seed, double level) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> largest;
  for (int i = 0; i < 500; ++i)
    largest.push_back(std::exp2(level + normal(random)));
  return largest;
}

std::int64_t skips_in(const trace::Trace& trace) {
  return std::count_if(trace.scaler_updates.begin(), trace.scaler_updates.end(),
                       [](const trace::ScalerUpdate& update) { return update.found_inf != 0; });
}

TEST(ScaleModel, KeepsTheScaleBelowWhatTheProgramAllows) {
  const std::vector<double> largest = noisy(7, -3);
  constexpr float ceiling = 0x1p15;
  const trace::Trace trace = recorded(largest, {0x1p10, 2, 0.5, 5}, ceiling);
  const TraceView view(trace);
  const auto model = make_scale_model(view, 0);
  ASSERT_TRUE(model);
  EXPECT_EQ(model->hand.ceiling, ceiling);
  bool bounded = false;
  for (const ScalerSettings& settings :
       {ScalerSettings{0x1p10, 2, 0.5, 5}, ScalerSettings{0x1p10, 4, 0.5, 3}, ScalerSettings{0x1p20, 2, 0.25, 8}}) {
    const trace::Trace actual = recorded(largest, settings, ceiling);
    EXPECT_EQ(predict(*model, settings).whole.skips, skips_in(actual));
    EXPECT_EQ(predict(*model, settings).final_scale, actual.scaler_updates.back().scale_after);
    bounded = bounded || skips_in(actual) < skips_in(recorded(largest, settings));
  }
  EXPECT_TRUE(bounded);
}

TEST(ScaleModel, SetsTheScaleWhereTheProgramDid) {
  trace::Trace trace = recorded(std::vector<double>(300, 1e-3), {0x1p10, 2, 0.5, 2000});
  for (std::size_t i = 0; i < trace.scaler_updates.size(); ++i) {
    const float scale = i < 100 ? 0x1p10F : (i < 200 ? 0x1p14F : 0x1p12F);
    trace.scaler_updates[i].scale_before = trace.scaler_updates[i].scale_after = scale;
  }
  const TraceView view(trace);
  const auto model = make_scale_model(view, 0);
  ASSERT_TRUE(model);
  const Prediction today = predict(*model, {0x1p10, 2, 0.5, 2000}, {.details = true});
  ASSERT_EQ(today.timeline.size(), 3U);
  EXPECT_EQ(today.timeline[1].first_step, 100);
  EXPECT_EQ(today.timeline[1].scale, 0x1p14);
  EXPECT_EQ(today.final_scale, 0x1p12);
}

TEST(ScaleModel, GoesOnFromARestoredTracker) {
  const std::vector<double> largest = noisy(8, -3);
  const ScalerSettings settings{0x1p12, 2, 0.5, 40};
  const trace::Trace trace = recorded(largest, settings, std::numeric_limits<float>::infinity(), 33);
  const TraceView view(trace);
  const auto model = make_scale_model(view, 0);
  ASSERT_TRUE(model);
  const Prediction today = predict(*model, settings, {.details = true});
  ASSERT_GT(today.timeline.size(), 1U);
  EXPECT_EQ(today.timeline[1].first_step, 7);
  EXPECT_EQ(today.final_scale, trace.scaler_updates.back().scale_after);
}

TEST(ScaleModel, LosesWhatTheGradientLossSays) {
  // Half of the second window's elements became zero where the first had none: they were flushed on their way.
  trace::Trace trace = recorded({1, 1, 1, 1}, {1024, 2, 0.5, 2000});
  trace.parameters.emplace_back();
  trace.parameters[0].id = 0;
  trace.parameters[0].name = "weight";
  for (const std::int64_t step : {0, 2}) {
    trace::GradientWindow window;
    window.parameter = 0;
    window.first_step = step;
    window.last_step = step + 1;
    window.steps = 2;
    window.scale_min = window.scale_max = 1024;
    window.backward_dtype = trace::DType::float16;
    window.stats.count = 1000;
    window.stats.zero = step == 0 ? 0 : 500;
    window.stats.exponents.first = step == 0 ? -30 : -34;  // the smallest that fp16 holds at this scale is 2^-34
    window.stats.exponents.counts =
        step == 0 ? std::vector<std::uint64_t>{200, 300, 300, 200} : std::vector<std::uint64_t>{200, 150, 100, 50};
    window.stats.absmax = std::exp2(window.stats.exponents.first + 3);
    trace.gradients.push_back(window);
  }
  const TraceView view(trace);
  const auto model = make_scale_model(view, 0);
  ASSERT_TRUE(model);
  ASSERT_EQ(model->slices.size(), 2U);
  const double share = model->slices[1].share_at(1024);
  EXPECT_DOUBLE_EQ((share * 1000 + model->slices[0].share_at(1024) * 1000) / 2000,
                   measure_gradient_loss(view, 0.05).share);
  EXPECT_GT(share, 0.45);
  EXPECT_LT(model->slices[1].share_at(16384), share);
  EXPECT_GT(model->slices[1].share_at(256), share);
}

TEST(ScaleModel, IsNotMadeFromNothing) {
  trace::Trace trace = recorded({1, 1, 1}, {1, 2, 0.5, 2000});
  trace.series.clear();
  const TraceView view(trace);
  EXPECT_FALSE(make_scale_model(view, 0));
  EXPECT_NE(report_tuning(view)[0].not_tuned_because, "");
  EXPECT_EQ(make_scale_model(view, 5).has_value(), false);
}

}  // namespace
}  // namespace ampscope::analyzers
