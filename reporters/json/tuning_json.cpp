#include "reporters/json/tuning_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reporters/common/text.h"

namespace ampscope::reporters {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no word for an infinite limit.
Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json texts(const std::vector<std::string>& values) {
  Json out = Json::array();
  for (const std::string& value : values)
    out.push_back(valid_utf8(value));
  return out;
}

Json settings_json(const analyzers::ScalerSettings& settings) {
  return {{"init_scale", number(settings.init_scale)},
          {"growth_factor", number(settings.growth_factor)},
          {"backoff_factor", number(settings.backoff_factor)},
          {"growth_interval", settings.growth_interval}};
}

Json loss_json(const analyzers::PredictedLoss& loss) {
  return {{"updates", loss.updates},
          {"skips", loss.skips},
          {"flushed_share", number(loss.flushed_share())},
          {"lost_share", number(loss.lost())}};
}

Json parameters_json(const std::vector<analyzers::PredictedParameter>& list, const std::vector<std::string>& names) {
  Json out = Json::array();
  for (const analyzers::PredictedParameter& parameter : list) {
    const auto index = static_cast<std::size_t>(parameter.parameter);
    out.push_back({{"parameter", valid_utf8(index < names.size() ? names[index] : "")},
                   {"flushed_share", number(parameter.flushed)},
                   {"overflowed_share", number(parameter.overflowed)}});
  }
  return out;
}

Json prediction_json(const analyzers::Prediction& prediction, const analyzers::ScalerSettings& settings,
                     const std::vector<std::string>& names) {
  Json timeline = Json::array();
  for (const analyzers::ScalerTimelineEntry& entry : prediction.timeline) {
    timeline.push_back({{"first_step", entry.first_step},
                        {"last_step", entry.last_step},
                        {"scale", number(entry.scale)},
                        {"skipped", entry.skipped}});
  }
  return {{"settings", settings_json(settings)},
          {"skips", prediction.whole.skips},
          {"skips_interval", {prediction.skips_low, prediction.skips_high}},
          {"whole", loss_json(prediction.whole)},
          {"kept_back", loss_json(prediction.kept_back)},
          {"settled_after", prediction.settled_after},
          {"final_scale", number(prediction.final_scale)},
          {"lowest_scale", number(prediction.lowest_scale)},
          {"timeline", std::move(timeline)},
          {"parameters", parameters_json(prediction.parameters, names)}};
}

Json scaler_json(const analyzers::TuningReport& report) {
  const analyzers::Tuning& tuning = report.tuning;
  Json out = {{"id", report.scaler},
              {"implementation", valid_utf8(report.implementation)},
              {"source", report.source.empty() ? Json(nullptr) : Json(valid_utf8(report.source))},
              {"updates", report.updates},
              {"disagreements", texts(report.disagreements)}};
  if (!report.not_tuned_because.empty()) {
    out["not_tuned_because"] = report.not_tuned_because;
    return out;
  }
  out["not_tuned_because"] = nullptr;
  out["steps"] = {{"first", report.first_step}, {"last", report.last_step}};
  out["kept_back_from_step"] = report.kept_back_step == trace::none ? Json(nullptr) : Json(report.kept_back_step);
  out["measured_share"] = number(tuning.measured);
  out["actual_skips"] = tuning.actual_skips;
  out["changed"] = tuning.changed;
  out["can_choose"] = tuning.can_choose;
  out["restored"] = report.restored;
  out["today"] = prediction_json(tuning.predicted_today, tuning.today, report.parameters);
  out["recommended"] = prediction_json(tuning.predicted_recommended, tuning.recommended, report.parameters);
  out["asked"] = report.asked ? prediction_json(report.asked->predicted, report.asked->settings, report.parameters)
                              : Json(nullptr);
  Json& choices = out["choices"] = Json::array();
  for (const analyzers::SettingChoice& choice : tuning.choices) {
    choices.push_back({{"setting", choice.name},
                       {"today", number(choice.today)},
                       {"recommended", number(choice.recommended)},
                       {"reason", choice.reason}});
  }
  out["no_scale_fits"] = nullptr;
  if (const auto& none = tuning.no_scale_fits) {
    out["no_scale_fits"] = {{"because", none->forward ? "forward" : "range"},
                            {"share_of_steps", number(none->share_of_steps)},
                            {"largest_scale", number(none->largest_scale)},
                            {"flushed_share", number(none->lost)},
                            {"range_log2", number(none->range)},
                            {"parameters_all_zero", none->all_zero},
                            {"parameters", parameters_json(none->parameters, report.parameters)},
                            {"overflows_in", texts(report.overflow_places)}};
  }
  out["code"] = {{"python", analyzers::python_line(tuning, report.restored, report.device_type)},
                 {"cpp", analyzers::cpp_line(tuning, report.restored)}};
  return out;
}

}  // namespace

std::string render_tuning_json(const std::vector<analyzers::TuningReport>& scalers) {
  Json list = Json::array();
  for (const analyzers::TuningReport& report : scalers)
    list.push_back(scaler_json(report));
  return Json({{"schema", "ampscope.tune/1"}, {"scalers", std::move(list)}}).dump(2) + "\n";
}

}  // namespace ampscope::reporters
