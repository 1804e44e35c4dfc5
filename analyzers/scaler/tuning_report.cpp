#include "analyzers/scaler/tuning_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/numbers.h"
#include "analyzers/scaler/replay.h"

namespace ampscope::analyzers {

namespace {

constexpr ScalerSettings torch_defaults{65536.0, 2.0, 0.5, 2000};
constexpr std::size_t most_places = 3;

/// A power of two as people type it, any other number exactly.
std::string literal(double value, const char* power_of_two) {
  const double power = std::log2(value);
  if (power == std::trunc(power) && std::abs(power) >= 7) {
    return fmt::format(fmt::runtime(power_of_two), static_cast<int>(power));
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

/// Settings that are not the `usual` ones. `first` is the name of the scale they start from.
std::vector<std::string> arguments(const ScalerSettings& settings, const char* pattern, const char* power_of_two,
                                   const ScalerSettings& usual = torch_defaults, const char* first = "init_scale") {
  std::vector<std::string> list;
  const auto add = [&](const char* name, const std::string& value) {
    list.push_back(fmt::format(fmt::runtime(pattern), name, value));
  };
  if (settings.init_scale != usual.init_scale) add(first, literal(settings.init_scale, power_of_two));
  if (settings.growth_factor != usual.growth_factor) add("growth_factor", literal(settings.growth_factor, "{}"));
  if (settings.backoff_factor != usual.backoff_factor) add("backoff_factor", literal(settings.backoff_factor, "{}"));
  if (settings.growth_interval != usual.growth_interval) {
    add("growth_interval", fmt::format("{}", settings.growth_interval));
  }
  return list;
}

std::string describe(const ScalerDisagreement& at) {
  switch (at.kind) {
    case Disagreement::assigned:
      return fmt::format("step {}: the program set the scale to {}", at.step,
                         scale(static_cast<double>(at.recorded.scale)));
    case Disagreement::changed_between:
      return fmt::format("step {}: the scale was {} before the update and not the {} that the one before had left",
                         at.step, scale(static_cast<double>(at.recorded.scale)),
                         scale(static_cast<double>(at.expected.scale)));
    case Disagreement::not_as_computed:
      return fmt::format("step {}: the update gave {}, GradScaler's arithmetic gives {}", at.step,
                         scale(static_cast<double>(at.recorded.scale)), scale(static_cast<double>(at.expected.scale)));
    case Disagreement::settings_changed:
      return fmt::format("step {}: the settings are not those of the update before", at.step);
  }
  return {};
}

}  // namespace

std::string device_type(const trace::RunInfo& run) {
  const bool gpu = std::any_of(run.devices.begin(), run.devices.end(),
                               [](const std::string& device) { return device.starts_with("cuda"); });
  return gpu ? "cuda" : "cpu";
}

std::vector<std::string> overflow_places(const TraceView& view, std::int64_t scaler) {
  std::map<std::int64_t, std::int64_t> first_in;
  for (const trace::ScalerUpdate* update : view.updates(scaler)) {
    if (update->found_inf == 0) continue;
    for (const trace::NonfiniteEvent* event : view.nonfinite_events(update->step)) {
      const trace::Site* const site = view.site(event->site);
      if (site == nullptr || site->in_recompute) continue;
      ++first_in[site->id];
      break;
    }
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> by_count;
  by_count.reserve(first_in.size());
  for (const auto& [site, count] : first_in)
    by_count.emplace_back(-count, site);
  std::sort(by_count.begin(), by_count.end());
  std::vector<std::string> places;
  for (const auto& [count, site] : by_count) {
    if (places.size() < most_places) places.push_back(view.describe(site));
  }
  return places;
}

std::string python_line(const ScalerSettings& settings, const std::string& device_type) {
  std::vector<std::string> list = arguments(settings, "{}={}", "2.0**{}");
  list.insert(list.begin(), fmt::format("\"{}\"", device_type));
  return fmt::format("scaler = torch.amp.GradScaler({})", fmt::join(list, ", "));
}

std::string cpp_line(const ScalerSettings& settings) {
  return fmt::format("executor::GradScaler scaler({{{}}});",
                     fmt::join(arguments(settings, ".{} = {}", "0x1p{}"), ", "));
}

std::string python_line(const Tuning& tuning, bool restored, const std::string& device_type) {
  if (!restored || !tuning.changed) return python_line(tuning.recommended, device_type);
  return fmt::format("state.update({}); scaler.load_state_dict(state)",
                     fmt::join(arguments(tuning.recommended, "{}={}", "2.0**{}", tuning.today, "scale"), ", "));
}

std::string cpp_line(const Tuning& tuning, bool restored) {
  if (!restored || !tuning.changed) return cpp_line(tuning.recommended);
  return fmt::format("{}; scaler.load_state_dict(state);",
                     fmt::join(arguments(tuning.recommended, "state.{} = {}", "0x1p{}", tuning.today, "scale"), "; "));
}

std::vector<TuningReport> report_tuning(const TraceView& view, const SettingsQuestion& question) {
  std::vector<TuningReport> reports;
  for (const trace::Scaler& scaler : view.trace().scalers) {
    TuningReport report;
    report.scaler = scaler.id;
    report.implementation = scaler.implementation;
    report.source = view.place(scaler.source);
    report.device_type = device_type(view.run());
    report.restored = scaler.restored;
    for (const trace::Parameter& parameter : view.trace().parameters)
      report.parameters.push_back(parameter.name);
    const auto updates = view.updates(scaler.id);
    report.updates =
        std::count_if(updates.begin(), updates.end(), [](const auto* update) { return !update->assigned; });
    const auto today = recorded_settings(view, scaler.id);
    if (!today) {
      report.not_tuned_because = "the scaler made no update";
      reports.push_back(std::move(report));
      continue;
    }
    report.first_step = updates.front()->step;
    report.last_step = updates.back()->step;
    for (const ScalerDisagreement& at : replay(updates).disagreements) {
      if (report.disagreements.size() < 5) report.disagreements.push_back(describe(at));
    }
    const auto model = make_scale_model(view, scaler.id);
    if (!model) {
      report.not_tuned_because =
          view.run().level >= trace::Level::automatic
              ? "no fp16 gradient other than zero was seen, so nothing says how large the scale may be"
              : "nothing of the size of fp16 gradients was recorded (--level auto or higher)";
      reports.push_back(std::move(report));
      continue;
    }
    report.tuning = tune(*model, *today);
    report.overflow_places = overflow_places(view, scaler.id);
    if (report.tuning.kept_back_from < model->limits.size()) {
      report.kept_back_step = model->limits[report.tuning.kept_back_from].step;
    }
    if (question.any()) {
      ScalerSettings asked = *today;
      asked.init_scale = question.init_scale.value_or(asked.init_scale);
      asked.growth_factor = question.growth_factor.value_or(asked.growth_factor);
      asked.backoff_factor = question.backoff_factor.value_or(asked.backoff_factor);
      asked.growth_interval = question.growth_interval.value_or(asked.growth_interval);
      report.asked = AskedSettings{
          asked,
          predict(*model, asked, {.kept_back_from = report.tuning.kept_back_from, .interval = true, .details = true})};
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace ampscope::analyzers
