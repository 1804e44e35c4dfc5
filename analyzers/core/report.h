// Everything a reporter shows. The JSON report is this structure spelled out; the terminal and HTML are views of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/core/finding.h"
#include "trace/trace.h"

namespace ampscope::analyzers {

/// What a run with `--budget` recorded of its steps, and what that cost.
struct BudgetSummary {
  double percent = 0;                             ///< asked for
  std::optional<double> cost_percent;             ///< (time with recording) / (time without) - 1, in percent
  std::pair<double, double> cost_interval{0, 0};  ///< 95 %, in percent
  std::int64_t operator_steps = 0;                ///< steps of which operators were seen
  std::int64_t gradient_steps = 0;                ///< steps of which gradients' statistics were taken
  std::int64_t full_steps = 0;                    ///< steps of which outputs' statistics were taken
};

struct RunSummary {
  std::vector<std::string> command;
  std::string working_directory;
  std::string language;
  std::string torch_version;
  std::string python_version;
  std::string tool_version;  ///< that recorded
  std::string processor;
  std::string device;     ///< "cpu", "cuda:0 NVIDIA H200"
  std::string precision;  ///< "fp16 autocast", "bf16 autocast", "fp32", "fp16 weights"
  std::int64_t start_time_ns = 0;
  std::int64_t steps = 0;
  std::vector<std::int64_t> skipped_steps;
  trace::Level level = trace::Level::automatic;
  std::optional<double> overhead_ratio;  ///< (run time) / (run time - own time); empty when unknown
  std::optional<BudgetSummary> budget;   ///< of the first process; empty when none was asked for
  std::int64_t events_dropped = 0;
  std::int64_t ranks = 1;
  std::optional<int> exit_status;
  std::string ended;     ///< RunEnd::how, or "unknown"
  bool damaged = false;  ///< part of the trace could not be read
  std::string switched_off_because;
  std::int64_t ops = 0;         ///< distinct op sites watched
  std::int64_t parameters = 0;  ///< watched
  std::int64_t rules = 0;       ///< evaluated
};

struct ScalerSettings {
  double init_scale = 0;
  double growth_factor = 0;
  double backoff_factor = 0;
  std::int64_t growth_interval = 0;
};

/// A parameter whose gradient was not finite in a skipped step.
struct SkippedGradient {
  std::string parameter;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  double share = 0;  ///< of its elements
};

/// What one optimizer did in a skipped step: with several, the scaler keeps back only those that met non-finite values.
struct OptimizerOutcome {
  std::string name;
  std::int64_t id = 0;
  bool taken = false;
};

/// A stretch of steps during which the scale stayed the same and no step was skipped, or one skipped step.
struct ScalerTimelineEntry {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double scale = 0;        ///< used in these steps
  double scale_after = 0;  ///< set by the update of last_step
  bool skipped = false;
  bool by_design = false;                    ///< a skip that the scaler is meant to make (settling, an upward probe)
  std::vector<std::string> parameters = {};  ///< whose gradients overflowed (skipped only), worst first, few
  std::int64_t tracker_before = 0;           ///< updates without a skip before first_step since the scale last changed
  std::int64_t tracker_after = 0;            ///< after last_step
  bool assigned = false;                     ///< the program set the scale itself
  // Of a skipped step; of very many skips only the first are told in detail.
  std::vector<SkippedGradient> gradients = {};    ///< all that were not finite, worst first
  std::vector<OptimizerOutcome> optimizers = {};  ///< in the order of their steps
  std::string born_op = {};                       ///< where the first non-finite value was made; empty when not known
  std::string born_phase = {};
  std::string born_module = {};
  std::string born_source = {};
  bool born_as_before = false;  ///< not seen in this step: taken from an earlier skip of the same parameters
  std::optional<bool> smaller_scale_helps = {};  ///< whether a smaller scale would have kept the step; empty: not known
};

struct ScalerReport {
  std::int64_t id = 0;
  std::string implementation;
  ScalerSettings settings;
  std::vector<ScalerTimelineEntry> timeline;
  std::optional<ScalerSettings> recommendation;
  std::string recommendation_reason;
};

/// One row of the op table: a site.
struct OpRow {
  std::int64_t site = 0;
  std::int64_t parent = trace::none;  ///< site of the row that called it: its bytes and time are part of that row's
  std::string op;
  std::string phase;
  std::string module;
  std::string module_class;
  std::string source;        ///< "train.py:48" relative to the working directory
  std::string dtype_before;  ///< of the first floating input as the user passed it: "fp32"
  std::string dtype_after;   ///< it was computed in: "fp16"
  std::string dtype_out;
  bool autocast = false;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  std::int64_t time_ns = 0;
  double absmax = 0;
  std::optional<double> headroom;  ///< powers of two from absmax to the largest finite value of the dtype
  std::optional<std::int64_t> first_nonfinite_step;
  std::int64_t nonfinite_calls = 0;
};

/// A window of the gradient heat map.
struct GradientBin {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double scale_log2 = 0;  ///< mean over the window
  trace::TensorStats stats;
};

struct ParameterRow {
  std::int64_t id = 0;
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;
  std::string module;
  std::string optimizer;
  double gradient_absmax = 0;
  double gradient_zero_share = 0;  ///< of all elements looked at
  /// 95 % interval of the share of zeros over all steps; empty where every step was looked at.
  std::optional<std::pair<double, double>> gradient_zero_interval;
  double gradient_subnormal_share = 0;  ///< share that is subnormal in fp16 at the scale in use
  std::int64_t nonfinite_steps = 0;
  std::vector<GradientBin> gradients;  ///< by window
};

struct SeriesRow {
  std::string name;
  std::vector<trace::SeriesPoint> points;
};

struct NonfiniteRow {
  std::int64_t step = 0;
  std::int64_t order = 0;
  std::string kind;  ///< "producer", "propagator", "input", "unknown"
  std::string op;
  std::string phase;
  std::string module;
  std::string source;
  std::string dtype;
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
  std::int64_t elements = 0;
};

struct HiddenRow {
  std::string kind;
  std::string name;
  double time_share = 0;
};

struct Report {
  RunSummary run;
  Verdict verdict = Verdict::clean;
  std::vector<Finding> findings;  ///< by severity, then first step
  std::vector<NotEvaluated> not_evaluated;
  std::vector<ScalerReport> scalers;
  std::vector<OpRow> ops;
  std::vector<ParameterRow> parameters;
  std::vector<NonfiniteRow> nonfinite;
  std::vector<SeriesRow> series;
  std::vector<HiddenRow> hidden;
};

}  // namespace ampscope::analyzers
