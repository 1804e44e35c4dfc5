#include "analyzers/core/tables.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "analyzers/core/sampled.h"
#include "analyzers/scaler/ledger.h"
#include "analyzers/scaler/tuner.h"
#include "trace/series.h"

namespace ampscope::analyzers {

namespace {

std::string first_device(const trace::RunInfo& run) {
  // Where there is a GPU, it is what the run is about; "cpu" is always there as well.
  const auto gpu =
      std::find_if(run.devices.begin(), run.devices.end(), [](const std::string& d) { return d != "cpu"; });
  if (gpu != run.devices.end()) return *gpu;
  return run.devices.empty() ? "cpu" : run.devices.front();
}

RunSummary summary_of(const std::deque<ProcessAnalysis>& processes) {
  const TraceView& view = processes.front().view;
  const trace::Trace& trace = view.trace();
  RunSummary run;
  run.command = trace.run.command;
  run.working_directory = trace.run.working_directory;
  run.language = trace.run.language;
  run.torch_version = trace.run.torch_version;
  run.python_version = trace.run.python_version;
  run.tool_version = trace.run.tool_version;
  run.processor = trace.run.processor;
  run.device = first_device(trace.run);
  run.precision = view.precision();
  run.start_time_ns = trace.run.start_time_ns;
  run.steps = view.steps();
  run.skipped_steps = view.skipped_steps();
  run.level = trace.run.level;
  if (trace.status.elapsed_ns > trace.status.own_time_ns && trace.status.own_time_ns >= 0) {
    run.overhead_ratio = static_cast<double>(trace.status.elapsed_ns) /
                         static_cast<double>(trace.status.elapsed_ns - trace.status.own_time_ns);
  }
  if (trace.run.budget_percent > 0) {
    const trace::RecorderStatus& status = trace.status;
    BudgetSummary budget;
    budget.percent = trace.run.budget_percent;
    if (status.cost >= 0) {
      budget.cost_percent = status.cost * 100;
      budget.cost_interval = {status.cost_low * 100, status.cost_high * 100};
    }
    budget.operator_steps = status.operator_steps;
    budget.gradient_steps = status.gradient_steps;
    budget.full_steps = status.full_steps;
    run.budget = budget;
  }
  run.ranks = static_cast<std::int64_t>(processes.size());
  run.ended = trace.end && !trace.end->how.empty() ? trace.end->how : "unknown";
  for (const ProcessAnalysis& process : processes) {
    const trace::Trace& each = process.view.trace();
    run.events_dropped += each.status.events_dropped;
    run.damaged = run.damaged || each.damage.any();
    if (run.switched_off_because.empty()) run.switched_off_because = each.status.switched_off_because;
    if (each.exit && !run.exit_status) run.exit_status = each.exit->status;
  }
  run.ops = std::count_if(trace.sites.begin(), trace.sites.end(),
                          [](const trace::Site& site) { return site.kind == trace::SiteKind::op; });
  run.parameters = static_cast<std::int64_t>(trace.parameters.size());
  return run;
}

const char* origin_name(trace::OriginKind kind) noexcept {
  switch (kind) {
    case trace::OriginKind::producer:
      return "producer";
    case trace::OriginKind::propagator:
      return "propagator";
    case trace::OriginKind::input:
      return "input";
    case trace::OriginKind::unknown:
    case trace::OriginKind::absorber:
      return "unknown";
  }
  return "unknown";
}

std::string dtype_text(trace::DType dtype) {
  return dtype == trace::DType::unknown ? std::string() : trace::short_dtype_name(dtype);
}

trace::DType first_floating(const std::vector<trace::TensorType>& tensors) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [](const trace::TensorType& tensor) { return trace::is_floating(tensor.dtype); });
  return found != tensors.end() ? found->dtype : trace::DType::unknown;
}

/// The op whose call encloses `site`; backward nodes and ranges between them are no rows of the table.
std::int64_t enclosing_op(const TraceView& view, const trace::Site& site) {
  const trace::Site* outer = view.site(site.parent);
  while (outer != nullptr && outer->kind != trace::SiteKind::op)
    outer = view.site(outer->parent);
  return outer != nullptr ? outer->id : trace::none;
}

OpRow op_row(const TraceView& view, const trace::Site& site) {
  const trace::SiteTotals& totals = view.totals(site.id);
  const trace::DType out = first_floating(site.outputs);
  OpRow row;
  row.site = site.id;
  row.parent = enclosing_op(view, site);
  row.op = site.name;
  row.phase = phase_name(site.phase);
  row.module = view.module_of(site.id).value_or("");
  row.module_class = site.module_class;
  row.source = view.place(view.source_of(site.id));
  row.dtype_before = dtype_text(first_floating(site.inputs));
  row.dtype_after = dtype_text(site.compute_dtype);
  row.dtype_out = dtype_text(out);
  row.autocast = site.autocast;
  row.calls = totals.calls;
  row.bytes = totals.bytes;
  row.time_ns = totals.time_ns;
  row.absmax = totals.absmax;
  const trace::DType limiting = trace::is_floating(out) ? out : site.compute_dtype;
  if (trace::is_floating(limiting) && totals.absmax > 0) {
    row.headroom = std::log2(trace::float_limits(limiting).max / totals.absmax);
  }
  if (totals.first_nonfinite_step != trace::none) row.first_nonfinite_step = totals.first_nonfinite_step;
  row.nonfinite_calls = totals.nonfinite_calls;
  return row;
}

ParameterRow parameter_row(const TraceView& view, const trace::Parameter& parameter) {
  ParameterRow row;
  row.id = parameter.id;
  row.name = parameter.name;
  row.dtype = dtype_text(parameter.dtype);
  row.shape = parameter.shape;
  row.count = parameter.count;
  row.module = parameter.module;
  if (const trace::Optimizer* const optimizer = view.optimizer(parameter.optimizer); optimizer != nullptr) {
    row.optimizer = optimizer->name;
  }
  double elements = 0;
  double zeros = 0;
  double subnormal = 0;
  for (const trace::GradientWindow* window : view.gradients(parameter.id)) {
    const double mean_scale_log2 = window->scale_min > 0 && window->scale_max > 0
                                       ? (std::log2(window->scale_min) + std::log2(window->scale_max)) / 2
                                       : 0;
    const int smallest_normal =
        trace::float_limits(trace::DType::float16).smallest_normal - static_cast<int>(std::lround(mean_scale_log2));
    elements += window->weight * static_cast<double>(window->stats.count);
    zeros += window->weight * static_cast<double>(window->stats.zero);
    subnormal += window->weight * static_cast<double>(window->stats.exponents.below(smallest_normal));
    row.gradient_absmax = std::max(row.gradient_absmax, window->stats.absmax);
    row.nonfinite_steps += window->nonfinite_steps;
    row.gradients.push_back({window->first_step, window->last_step, mean_scale_log2, window->stats});
  }
  if (elements > 0) {
    row.gradient_zero_share = zeros / elements;
    row.gradient_subnormal_share = subnormal / elements;
    row.gradient_zero_interval = zero_share_interval(view.gradients(parameter.id));
  }
  return row;
}

ScalerReport scaler_report(const ProcessAnalysis& process, const trace::Scaler& scaler) {
  const TraceView& view = process.view;
  ScalerReport report;
  report.id = scaler.id;
  report.implementation = scaler.implementation;
  const auto updates = view.updates(scaler.id);
  if (updates.empty()) return report;
  const trace::ScalerUpdate& first = *updates.front();
  report.settings = {first.scale_before, first.growth_factor, first.backoff_factor, first.growth_interval};
  report.timeline = make_ledger(process, scaler.id);
  if (const auto& tuning = process.tunings.at(static_cast<std::size_t>(scaler.id)); tuning && tuning->changed) {
    report.recommendation = tuning->recommended;
    report.recommendation_reason = summary(*tuning);
  }
  return report;
}

NonfiniteRow nonfinite_row(const TraceView& view, const trace::NonfiniteEvent& event) {
  NonfiniteRow row;
  row.step = event.step;
  row.order = event.order;
  row.kind = origin_name(event.kind);
  if (const trace::Site* const site = view.site(event.site); site != nullptr) {
    row.op = site->name;
    row.phase = phase_name(site->phase);
    row.module = view.module_of(site->id).value_or("");
    row.source = view.place(view.source_of(site->id));
    row.dtype = dtype_text(compute_dtype(event, *site));
  }
  const NonfiniteCounts counts = output_counts(event);
  row.nan = static_cast<std::int64_t>(counts.nan);
  row.infinite = static_cast<std::int64_t>(counts.infinite());
  row.elements = static_cast<std::int64_t>(counts.elements);
  return row;
}

std::string series_name(const TraceView& view, const trace::SeriesPoint& point) {
  if (point.name == trace::backward_absmax_series) {
    return view.trace().scalers.size() < 2 ? point.name : point.name + " of scaler " + std::to_string(point.object);
  }
  const trace::Optimizer* const optimizer = view.optimizer(point.object);
  if (optimizer == nullptr || view.trace().optimizers.size() < 2) return point.name;
  return point.name + " of " + optimizer->name + " " + std::to_string(optimizer->id);
}

}  // namespace

void fill_tables(const std::deque<ProcessAnalysis>& processes, Report& report) {
  if (processes.empty()) return;
  const ProcessAnalysis& process = processes.front();
  const TraceView& view = process.view;
  const trace::Trace& trace = view.trace();
  report.run = summary_of(processes);
  for (const trace::Site& site : trace.sites) {
    if (site.kind == trace::SiteKind::op) report.ops.push_back(op_row(view, site));
  }
  for (const trace::Parameter& parameter : trace.parameters)
    report.parameters.push_back(parameter_row(view, parameter));
  for (const trace::Scaler& scaler : trace.scalers)
    report.scalers.push_back(scaler_report(process, scaler));
  for (const trace::NonfiniteEvent& event : trace.nonfinite_events) {
    if (event.kind != trace::OriginKind::absorber) report.nonfinite.push_back(nonfinite_row(view, event));
  }
  for (const trace::SeriesPoint& point : trace.series) {
    const std::string name = series_name(view, point);
    auto row = std::find_if(report.series.begin(), report.series.end(),
                            [&](const SeriesRow& each) { return each.name == name; });
    if (row == report.series.end()) row = report.series.insert(report.series.end(), {name, {}});
    row->points.push_back(point);
  }
  for (const trace::HiddenRegion& region : trace.hidden_regions) {
    const double elapsed = static_cast<double>(std::max<std::int64_t>(trace.status.elapsed_ns, 0));
    report.hidden.push_back(
        {region.kind, region.name, elapsed > 0 ? static_cast<double>(region.time_ns) / elapsed : 0});
  }
}

}  // namespace ampscope::analyzers
