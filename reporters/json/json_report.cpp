#include "reporters/json/json_report.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include <fmt/chrono.h>

#include "reporters/common/fingerprint.h"
#include "reporters/common/place.h"
#include "reporters/common/text.h"
#include "trace/describe.h"

namespace ampscope::reporters {
namespace {

using Json = nlohmann::ordered_json;

Json text(std::string_view value) {
  return valid_utf8(value);
}

Json text_or_null(const std::optional<std::string>& value) {
  return value ? text(*value) : Json(nullptr);
}

/// Empty means unknown.
Json text_or_null(const std::string& value) {
  return value.empty() ? Json(nullptr) : text(value);
}

Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  // Whole numbers without ".0", as long as a double holds them exactly.
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (value == std::trunc(value) && std::abs(value) < exact) return static_cast<std::int64_t>(value);
  return value;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

template <typename Integer>
Json integer_or_null(const std::optional<Integer>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json texts(const std::vector<std::string>& values) {
  Json out = Json::array();
  for (const std::string& value : values)
    out.push_back(text(value));
  return out;
}

Json utc(std::int64_t nanoseconds) {
  if (nanoseconds <= 0) return nullptr;
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(nanoseconds / 1'000'000'000)));
}

Json budget_json(const std::optional<analyzers::BudgetSummary>& budget) {
  if (!budget) return nullptr;
  return {
      {"percent", number(budget->percent)},
      {"cost_percent", number_or_null(budget->cost_percent)},
      {"cost_percent_interval",
       budget->cost_percent ? Json::array({number(budget->cost_interval.first), number(budget->cost_interval.second)})
                            : Json(nullptr)},
      {"operator_steps", budget->operator_steps},
      {"gradient_steps", budget->gradient_steps},
      {"full_steps", budget->full_steps},
  };
}

Json run_json(const analyzers::RunSummary& run) {
  return {
      {"command", texts(run.command)},
      {"torch", text_or_null(run.torch_version)},
      {"device", text_or_null(run.device)},
      {"steps", run.steps},
      {"skipped_steps", run.skipped_steps},
      {"level", trace::level_name(run.level)},
      {"overhead_ratio", number_or_null(run.overhead_ratio)},
      {"budget", budget_json(run.budget)},
      {"dropped", run.events_dropped},
      {"ranks", run.ranks},
      {"exit_status", integer_or_null(run.exit_status)},
      {"precision", text_or_null(run.precision)},
      {"language", text_or_null(run.language)},
      {"python", text_or_null(run.python_version)},
      {"processor", text_or_null(run.processor)},
      {"working_directory", text_or_null(run.working_directory)},
      {"started", utc(run.start_time_ns)},
      {"ended", text_or_null(run.ended)},
      {"recorded_by", text_or_null(run.tool_version)},
      {"damaged", run.damaged},
      {"switched_off_because", text_or_null(run.switched_off_because)},
      {"ops", run.ops},
      {"parameters", run.parameters},
      {"rules", run.rules},
  };
}

Json source_json(const std::optional<trace::SourceLine>& source, const analyzers::RunSummary& run) {
  if (!source || !source->known()) return nullptr;
  return text(place(*source, run.working_directory));
}

Json culprit_json(const analyzers::Culprit& culprit, const analyzers::RunSummary& run) {
  const bool has_function = culprit.source && !culprit.source->function.empty();
  return {
      {"op", text_or_null(culprit.op)},
      {"phase", culprit.phase ? Json(analyzers::phase_name(*culprit.phase)) : Json(nullptr)},
      {"module", text_or_null(culprit.module)},
      {"parameter", text_or_null(culprit.parameter)},
      {"source", source_json(culprit.source, run)},
      {"function", has_function ? text(culprit.source->function) : Json(nullptr)},
  };
}

Json evidence_json(const analyzers::Evidence& evidence) {
  Json out = Json::object();
  for (const auto& [name, value] : evidence) {
    if (const auto* const figure = std::get_if<double>(&value)) {
      out[valid_utf8(name)] = number(*figure);
    } else {
      out[valid_utf8(name)] = text(std::get<std::string>(value));
    }
  }
  return out;
}

Json link_json(const analyzers::ChainLink& link, const analyzers::RunSummary& run) {
  return {
      {"step", link.step},
      {"op", text(link.op)},
      {"phase", analyzers::phase_name(link.phase)},
      {"module", text(link.module)},
      {"source", source_json(link.source, run)},
      {"dtype", trace::short_dtype_name(link.dtype)},
      {"input_absmax", number_or_null(link.input_absmax)},
      {"output_absmax", number_or_null(link.output_absmax)},
      {"nonfinite", link.nonfinite},
      {"note", text(link.note)},
  };
}

Json finding_json(const analyzers::Finding& finding, const analyzers::RunSummary& run) {
  Json out = {
      {"rule", text(finding.rule)},
      {"name", text(finding.name)},
      {"severity", analyzers::severity_name(finding.severity)},
      {"title", text(finding.title)},
      {"message", text(finding.message)},
      {"precision_fault", finding.precision_fault},
      {"same_in_fp32", finding.same_in_fp32},
      {"culprit", culprit_json(finding.culprit, run)},
      {"steps", {{"first", finding.steps.first}, {"last", finding.steps.last}, {"count", finding.steps.count}}},
      {"evidence", evidence_json(finding.evidence)},
      {"fix", text(finding.fix)},
      {"symptoms", texts(finding.symptoms)},
      {"proof", text(finding.proof)},
      {"fix_cpp", text_or_null(finding.fix_cpp)},
  };
  Json& explained = out["explained"] = Json::array();
  for (const analyzers::Finding& symptom : finding.explained)
    explained.push_back(finding_json(symptom, run));
  Json& chain = out["chain"] = Json::array();
  for (const analyzers::ChainLink& link : finding.chain)
    chain.push_back(link_json(link, run));
  return out;
}

Json settings_json(const analyzers::ScalerSettings& settings) {
  return {
      {"init_scale", number(settings.init_scale)},
      {"growth_factor", number(settings.growth_factor)},
      {"backoff_factor", number(settings.backoff_factor)},
      {"growth_interval", settings.growth_interval},
  };
}

Json skip_json(const analyzers::ScalerTimelineEntry& entry) {
  Json gradients = Json::array();
  for (const analyzers::SkippedGradient& gradient : entry.gradients) {
    gradients.push_back({{"parameter", text(gradient.parameter)},
                         {"nan", gradient.nan},
                         {"infinite", gradient.infinite},
                         {"share", number(gradient.share)}});
  }
  Json optimizers = Json::array();
  for (const analyzers::OptimizerOutcome& optimizer : entry.optimizers) {
    optimizers.push_back({{"name", text(optimizer.name)}, {"id", optimizer.id}, {"taken", optimizer.taken}});
  }
  Json born = nullptr;
  if (!entry.born_op.empty()) {
    born = {{"op", text(entry.born_op)},
            {"phase", text(entry.born_phase)},
            {"module", text(entry.born_module)},
            {"source", text_or_null(entry.born_source)},
            {"as_before", entry.born_as_before}};
  }
  return {{"gradients", std::move(gradients)},
          {"optimizers", std::move(optimizers)},
          {"born", std::move(born)},
          {"smaller_scale_helps", entry.smaller_scale_helps ? Json(*entry.smaller_scale_helps) : Json(nullptr)}};
}

Json scaler_json(const analyzers::ScalerReport& scaler) {
  Json timeline = Json::array();
  for (const analyzers::ScalerTimelineEntry& entry : scaler.timeline) {
    timeline.push_back({
        {"first_step", entry.first_step},
        {"last_step", entry.last_step},
        {"scale", number(entry.scale)},
        {"scale_after", number(entry.scale_after)},
        {"skipped", entry.skipped},
        {"by_design", entry.by_design},
        {"parameters", texts(entry.parameters)},
        {"tracker_before", entry.tracker_before},
        {"tracker_after", entry.tracker_after},
        {"assigned", entry.assigned},
        {"skip", entry.skipped ? skip_json(entry) : Json(nullptr)},
    });
  }
  Json recommendation = nullptr;
  if (scaler.recommendation) {
    recommendation = settings_json(*scaler.recommendation);
    recommendation["reason"] = text(scaler.recommendation_reason);
  }
  return {
      {"settings", settings_json(scaler.settings)},
      {"timeline", std::move(timeline)},
      {"recommendation", std::move(recommendation)},
      {"id", scaler.id},
      {"implementation", text_or_null(scaler.implementation)},
  };
}

Json rounding_json(const std::optional<analyzers::RoundingSummary>& rounding) {
  if (!rounding) return nullptr;
  return {
      {"dtype", text_or_null(rounding->dtype)},
      {"reference", text_or_null(rounding->reference)},
      {"steps", rounding->steps},
      {"elements", rounding->elements},
      {"mean_ulp", number(rounding->mean_ulp)},
      {"max_ulp", number(rounding->max_ulp)},
      {"worst_value", number(rounding->worst_value)},
      {"worst_reference", number(rounding->worst_reference)},
      {"above_one_ulp_share", number(rounding->above_one_ulp_share)},
      {"relative_error", number(rounding->relative_error)},
      {"overflowed", rounding->overflowed},
  };
}

Json op_json(const analyzers::OpRow& row) {
  return {
      {"site", row.site},
      {"parent", row.parent == trace::none ? Json(nullptr) : Json(row.parent)},
      {"op", text(row.op)},
      {"phase", text(row.phase)},
      {"module", text(row.module)},
      {"module_class", text(row.module_class)},
      {"source", text_or_null(row.source)},
      {"dtype_before", text_or_null(row.dtype_before)},
      {"dtype_after", text_or_null(row.dtype_after)},
      {"dtype_out", text_or_null(row.dtype_out)},
      {"autocast", row.autocast},
      {"calls", row.calls},
      {"bytes", row.bytes},
      {"time_ns", row.time_ns},
      {"absmax", number(row.absmax)},
      {"headroom", number_or_null(row.headroom)},
      {"first_nonfinite_step", integer_or_null(row.first_nonfinite_step)},
      {"nonfinite_calls", row.nonfinite_calls},
      {"rounding", rounding_json(row.rounding)},
  };
}

Json window_json(const analyzers::GradientBin& window) {
  const trace::TensorStats& stats = window.stats;
  return {
      {"first_step", window.first_step},
      {"last_step", window.last_step},
      {"scale_log2", number(window.scale_log2)},
      {"count", stats.count},
      {"zero", stats.zero},
      {"subnormal", stats.subnormal},
      {"nan", stats.nan},
      {"infinite", stats.infinite()},
      {"absmax", number(stats.absmax)},
      {"exponents", {{"first", stats.exponents.first}, {"counts", stats.exponents.counts}}},
  };
}

Json parameter_json(const analyzers::ParameterRow& row) {
  Json windows = Json::array();
  for (const analyzers::GradientBin& window : row.gradients)
    windows.push_back(window_json(window));
  return {
      {"id", row.id},
      {"name", text(row.name)},
      {"dtype", text(row.dtype)},
      {"shape", row.shape},
      {"count", row.count},
      {"module", text(row.module)},
      {"optimizer", text_or_null(row.optimizer)},
      {"gradient_absmax", number(row.gradient_absmax)},
      {"gradient_zero_share", number(row.gradient_zero_share)},
      {"gradient_zero_interval", row.gradient_zero_interval ? Json::array({number(row.gradient_zero_interval->first),
                                                                           number(row.gradient_zero_interval->second)})
                                                            : Json(nullptr)},
      {"gradient_subnormal_share", number(row.gradient_subnormal_share)},
      {"nonfinite_steps", row.nonfinite_steps},
      {"gradients", std::move(windows)},
  };
}

Json flight_json(const analyzers::FlightRow& row) {
  Json calls = Json::array();
  for (const analyzers::RecentCallRow& call : row.calls) {
    calls.push_back({{"order", call.order},
                     {"step", call.step},
                     {"site", call.site},
                     {"absmax", number_or_null(call.absmax)},
                     {"nonfinite", call.nonfinite}});
  }
  return {{"step", row.step}, {"calls", std::move(calls)}};
}

Json nonfinite_json(const analyzers::NonfiniteRow& row) {
  return {
      {"step", row.step},
      {"order", row.order},
      {"kind", text(row.kind)},
      {"op", text(row.op)},
      {"phase", text(row.phase)},
      {"module", text(row.module)},
      {"source", text_or_null(row.source)},
      {"dtype", text(row.dtype)},
      {"nan", row.nan},
      {"infinite", row.infinite},
      {"elements", row.elements},
  };
}

Json series_json(const analyzers::SeriesRow& row) {
  Json points = Json::array();
  for (const trace::SeriesPoint& point : row.points) {
    points.push_back({
        {"object", point.object == trace::none ? Json(nullptr) : Json(point.object)},
        {"first_step", point.first_step},
        {"last_step", point.last_step},
        {"count", point.count},
        {"nonfinite", point.nonfinite},
        {"mean", number(point.mean)},
        {"min", number(point.min)},
        {"max", number(point.max)},
    });
  }
  return {{"name", text(row.name)}, {"points", std::move(points)}};
}

template <typename Row, typename Spell>
Json rows(const std::vector<Row>& values, Spell spell) {
  Json out = Json::array();
  for (const Row& value : values)
    out.push_back(spell(value));
  return out;
}

}  // namespace

Json to_json(const analyzers::Report& report) {
  Json out = {
      {"schema", "ampscope.report/1"},
      {"tool", {{"name", "ampscope"}, {"version", AMPSCOPE_VERSION}}},
      {"run", run_json(report.run)},
      {"verdict", analyzers::verdict_name(report.verdict)},
  };

  Json& findings = out["findings"] = Json::array();
  const std::vector<std::string> names = fingerprints(report);
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    Json finding = finding_json(report.findings[i], report.run);
    finding["fingerprint"] = names[i];
    findings.push_back(std::move(finding));
  }

  out["not_evaluated"] = rows(report.not_evaluated, [](const analyzers::NotEvaluated& rule) -> Json {
    return {{"rule", text(rule.rule)}, {"name", text(rule.name)}, {"needs", text(rule.needs)}};
  });
  out["scaler"] = report.scalers.empty() ? Json(nullptr) : scaler_json(report.scalers.front());
  if (report.scalers.size() > 1) out["scalers"] = rows(report.scalers, scaler_json);
  out["ops"] = rows(report.ops, op_json);
  out["parameters"] = rows(report.parameters, parameter_json);
  out["nonfinite"] = rows(report.nonfinite, nonfinite_json);
  out["flight_records"] = rows(report.flight, flight_json);
  out["series"] = rows(report.series, series_json);
  out["hidden"] = rows(report.hidden, [](const analyzers::HiddenRow& row) -> Json {
    return {{"kind", text(row.kind)}, {"name", text(row.name)}, {"time_share", number(row.time_share)}};
  });
  return out;
}

std::string render_json(const analyzers::Report& report) {
  return to_json(report).dump(2) + "\n";
}

}  // namespace ampscope::reporters
