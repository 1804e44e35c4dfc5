#include "tests/viewer/fixture_reports.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ampscope::viewer_tests {

namespace {

using analyzers::ChainLink;
using analyzers::Finding;
using analyzers::GradientBin;
using analyzers::OpRow;
using analyzers::ParameterRow;
using analyzers::Report;
using analyzers::Severity;
using trace::Phase;

constexpr std::int64_t steps = 412;

/// Values whose exponents are spread like a bell around `middle`.
trace::TensorStats bell(std::uint64_t count, double middle, double width, double zero_share) {
  trace::TensorStats stats;
  stats.count = count;
  stats.zero = static_cast<std::uint64_t>(zero_share * static_cast<double>(count));
  const double nonzero = static_cast<double>(count - stats.zero);
  const int lowest = static_cast<int>(std::floor(middle - 4 * width));
  const int highest = static_cast<int>(std::ceil(middle + 3 * width));
  for (int exponent = lowest; exponent <= highest; ++exponent) {
    const double distance = (exponent + 0.5 - middle) / width;
    const auto share = static_cast<std::uint64_t>(nonzero * std::exp(-distance * distance / 2) / (width * 2.5066));
    if (share > 0) stats.exponents.add(exponent, share);
  }
  stats.absmax = std::ldexp(1.5, stats.exponents.empty() ? 0 : stats.exponents.last());
  stats.max = stats.absmax;
  stats.min = -stats.absmax;
  return stats;
}

std::vector<GradientBin> windows(std::int64_t run_steps, int count, std::uint64_t elements, double middle,
                                 double scale_log2, double zero_share) {
  std::vector<GradientBin> bins;
  for (int i = 0; i < count; ++i) {
    GradientBin bin;
    bin.first_step = run_steps * i / count;
    bin.last_step = run_steps * (i + 1) / count - 1;
    bin.scale_log2 = scale_log2;
    const double progress = static_cast<double>(i) / count;
    bin.stats = bell(elements, middle - 3 * progress + 0.6 * std::sin(i * 0.9), 2.6, zero_share);
    bins.push_back(std::move(bin));
  }
  return bins;
}

ParameterRow parameter(std::int64_t id, const std::string& module, const char* leaf, std::vector<std::int64_t> shape) {
  ParameterRow row;
  row.id = id;
  row.name = module.empty() ? leaf : module + "." + leaf;
  row.dtype = "fp32";
  row.module = module;
  row.optimizer = "AdamW";
  row.count = 1;
  for (const std::int64_t size : shape)
    row.count *= size;
  row.shape = std::move(shape);
  return row;
}

void give_gradients(ParameterRow& row, std::int64_t run_steps, int count, double middle, double scale_log2,
                    double zero_share) {
  row.gradients = windows(run_steps, count, static_cast<std::uint64_t>(row.count) * 8, middle, scale_log2, zero_share);
  for (const GradientBin& bin : row.gradients)
    row.gradient_absmax = std::max(row.gradient_absmax, bin.stats.absmax);
  row.gradient_zero_share = zero_share;
}

/// The parameters of a transformer of `layers` layers.
std::vector<ParameterRow> transformer_parameters(int layers) {
  std::vector<ParameterRow> rows;
  std::int64_t id = 0;
  rows.push_back(parameter(id++, "embedding", "weight", {96, 64}));
  for (int layer = 0; layer < layers; ++layer) {
    const std::string at = fmt::format("layers.{}", layer);
    rows.push_back(parameter(id++, at + ".attention.qkv", "weight", {192, 64}));
    rows.push_back(parameter(id++, at + ".attention.qkv", "bias", {192}));
    rows.push_back(parameter(id++, at + ".attention.proj", "weight", {64, 64}));
    rows.push_back(parameter(id++, at + ".norm", "weight", {64}));
    rows.push_back(parameter(id++, at + ".mlp.up", "weight", {256, 64}));
    rows.push_back(parameter(id++, at + ".mlp.down", "weight", {64, 256}));
  }
  rows.push_back(parameter(id, "head", "weight", {96, 64}));
  return rows;
}

struct OpMaker {
  std::vector<OpRow> rows;

  OpRow& add(const std::string& op, const char* phase, const std::string& module, const char* module_class, int line,
             const char* before, const char* after, std::int64_t microseconds, double absmax,
             std::int64_t parent = trace::none) {
    OpRow row;
    row.site = static_cast<std::int64_t>(rows.size());
    row.parent = parent;
    row.op = op;
    row.phase = phase;
    row.module = module;
    row.module_class = module_class;
    row.source = fmt::format("model.py:{}", line);
    row.dtype_before = before;
    row.dtype_after = after;
    row.dtype_out = after;
    row.autocast = std::string_view(phase) == "forward";
    row.calls = steps;
    row.bytes = steps * 4096 * (std::string_view(after) == "fp32" ? 4 : 2);
    row.time_ns = microseconds * 1000 * steps;
    row.absmax = absmax;
    const bool half = std::string_view(after) == "fp16";
    row.headroom = std::log2((half ? 65504.0 : 3.4e38) / absmax);
    rows.push_back(std::move(row));
    return rows.back();
  }
};

std::vector<OpRow> transformer_ops(int layers, const char* half) {
  OpMaker ops;
  ops.add("aten::embedding", "forward", "embedding", "Embedding", 21, "fp32", "fp32", 12, 0.4);
  for (int layer = 0; layer < layers; ++layer) {
    const std::string at = fmt::format("layers.{}", layer);
    ops.add("aten::layer_norm", "forward", at + ".norm", "LayerNorm", 40, "fp32", "fp32", 9, 3.1);
    const std::int64_t qkv =
        ops.add("aten::linear", "forward", at + ".attention.qkv", "Linear", 52, "fp32", half, 31, 9.0).site;
    ops.add("aten::_to_copy", "forward", at + ".attention.qkv", "Linear", 52, "fp32", half, 4, 3.0, qkv);
    ops.add("aten::addmm", "forward", at + ".attention.qkv", "Linear", 52, half, half, 22, 9.0, qkv);
    ops.add("aten::matmul", "forward", at + ".attention", "Attention", 57, half, half, 18, 840 + 300.0 * layer);
    ops.add("aten::softmax", "forward", at + ".attention", "Attention", 58, half, half, 8, 1.0);
    ops.add("aten::linear", "forward", at + ".attention.proj", "Linear", 63, half, half, 16, 11.0);
    ops.add("aten::linear", "forward", at + ".mlp.up", "Linear", 71, "fp32", half, 28, 14.0);
    ops.add("aten::gelu", "forward", at + ".mlp", "MLP", 72, half, half, 6, 14.0);
    ops.add("aten::linear", "forward", at + ".mlp.down", "Linear", 73, half, half, 27, 22.0);
    ops.add("aten::mm", "backward", at + ".mlp.down", "Linear", 73, half, half, 41, 610.0);
    ops.add("aten::mm", "backward", at + ".mlp.up", "Linear", 71, half, half, 40, 433.0);
    ops.add("aten::bmm", "backward", at + ".attention", "Attention", 57, half, half, 37, 2210.0);
  }
  ops.add("aten::linear", "forward", "head", "Linear", 91, "fp32", half, 44, 18.0);
  ops.add("aten::cross_entropy_loss", "forward", "", "", 97, half, "fp32", 14, 4.5);
  ops.add("aten::_fused_adamw_", "optimizer", "", "", 104, "fp32", "fp32", 210, 1.0);
  return std::move(ops.rows);
}

std::vector<analyzers::SeriesRow> series(std::int64_t run_steps) {
  analyzers::SeriesRow loss{"loss", {}};
  analyzers::SeriesRow norm{"grad_norm", {}};
  analyzers::SeriesRow time{"step_time_ns", {}};
  for (std::int64_t at = 0; at < run_steps; at += 4) {
    trace::SeriesPoint point;
    point.first_step = at;
    point.last_step = std::min(at + 3, run_steps - 1);
    point.count = point.last_step - at + 1;
    const double progress = static_cast<double>(at) / static_cast<double>(run_steps);
    point.mean = 4.4 * std::exp(-2.2 * progress) + 0.08 * std::sin(static_cast<double>(at) * 0.7);
    point.min = point.mean - 0.12;
    point.max = point.mean + 0.15;
    loss.points.push_back(point);
    point.mean = 2.1 * std::exp(-progress) * (1 + 0.3 * std::sin(static_cast<double>(at)));
    point.min = point.mean * 0.7;
    point.max = point.mean * 1.6;
    norm.points.push_back(point);
    point.mean = 3.1e6;
    point.min = 2.8e6;
    point.max = 4.4e6;
    time.points.push_back(point);
  }
  return {loss, norm, time};
}

Report transformer(const char* half) {
  Report report;
  report.run.command = {"python", "train.py", "--amp", "--epochs", "3"};
  report.run.working_directory = "/project/reader";
  report.run.language = "python";
  report.run.torch_version = "2.13.0+cpu";
  report.run.python_version = "3.11.2";
  report.run.tool_version = "0.1.0";
  report.run.processor = "Example CPU";
  report.run.device = "cpu";
  report.run.precision = fmt::format("{} autocast", half);
  report.run.start_time_ns = 1'767'323'045'000'000'000;
  report.run.steps = steps;
  report.run.overhead_ratio = 1.0621;
  report.run.exit_status = 0;
  report.run.ended = "exit";
  report.run.rules = 17;
  report.ops = transformer_ops(4, half);
  report.parameters = transformer_parameters(4);
  report.run.ops = static_cast<std::int64_t>(report.ops.size());
  report.run.parameters = static_cast<std::int64_t>(report.parameters.size());
  report.series = series(steps);
  return report;
}

void give_all_gradients(Report& report, double middle, double scale_log2, double zero_share) {
  double shift = 0;
  for (ParameterRow& row : report.parameters) {
    give_gradients(row, steps, 52, middle - shift, scale_log2, zero_share);
    shift = std::fmod(shift + 0.7, 4.0);
  }
}

/// From 65536: a skip in each of the steps `skipped`, the scale halved by each.
analyzers::ScalerReport scaler(const std::vector<std::int64_t>& skipped, bool by_design) {
  analyzers::ScalerReport scaler;
  scaler.implementation = "torch.amp.GradScaler";
  scaler.settings = {65536, 2, 0.5, 2000};
  double scale = 65536;
  std::int64_t next = 0;
  for (const std::int64_t step : skipped) {
    if (step > next) scaler.timeline.push_back({next, step - 1, scale, scale, false, false, {}});
    scaler.timeline.push_back(
        {step, step, scale, scale / 2, true, by_design, {"layers.3.mlp.up.weight", "head.weight"}});
    scale /= 2;
    next = step + 1;
  }
  scaler.timeline.push_back({next, steps - 1, scale, scale, false, false, {}});
  return scaler;
}

Finding note_calibration(const analyzers::ScalerReport& scaler) {
  Finding finding;
  finding.rule = "AMP301";
  finding.name = "calibration-ok";
  finding.severity = Severity::info;
  finding.title = "the first steps were skipped while the loss scale settled, as it is meant to";
  finding.message = "The scale settled at 16 384 after 2 skips.";
  finding.proof = "settled at 16 384";
  finding.steps = {0, 1, 2};
  finding.evidence = {{"skips", 2.0}, {"settled_scale", scaler.timeline.back().scale}};
  finding.fix = "nothing to do; init_scale=16384 would save the 2 skips";
  return finding;
}

ChainLink link(const char* op, Phase phase, const char* module, double in, double out, std::int64_t nonfinite,
               const char* note) {
  ChainLink link;
  link.step = 41;
  link.op = op;
  link.phase = phase;
  link.module = module;
  link.source = trace::SourceLine{"/project/reader/model.py", 57, "forward"};
  link.dtype = phase == Phase::optimizer ? trace::DType::unknown : trace::DType::float16;
  if (in > 0) link.input_absmax = in;
  if (out > 0) link.output_absmax = out;
  link.nonfinite = nonfinite;
  link.note = note;
  return link;
}

}  // namespace

Report healthy() {
  Report report = transformer("fp16");
  report.verdict = analyzers::Verdict::info;
  report.run.skipped_steps = {0, 1};
  report.scalers = {scaler({0, 1}, true)};
  report.findings = {note_calibration(report.scalers.front())};
  give_all_gradients(report, -11, 14, 0.04);
  return report;
}

Report clipped() {
  Report report = transformer("fp16");
  report.verdict = analyzers::Verdict::error;
  const std::vector<std::int64_t> skipped = {0, 1, 2, 60, 61, 150, 220, 300, 301};
  report.run.skipped_steps = skipped;
  report.scalers = {scaler(skipped, false)};
  for (auto& entry : report.scalers.front().timeline)
    entry.by_design = entry.skipped && entry.first_step < 3;
  report.scalers.front().recommendation = analyzers::ScalerSettings{1024, 2, 0.5, 1000};
  report.scalers.front().recommendation_reason = "With these settings 1 step would be skipped instead of 9.";
  give_all_gradients(report, -9, 7, 0.02);

  Finding clip;
  clip.rule = "AMP202";
  clip.name = "clip-before-unscale";
  clip.severity = Severity::error;
  clip.title = "gradients are clipped while they are still scaled";
  clip.message = "The clip saw a norm of 48 211 where the true norm was 0.736, so max_norm 1.0 acted like 0.0000153.";
  clip.proof = "norm seen 48 211 · true norm 0.736 · max_norm 1.0 acts like 0.0000153";
  clip.culprit.op = "clip_grad_norm_";
  clip.culprit.phase = Phase::optimizer;
  clip.culprit.source = trace::SourceLine{"/project/reader/train.py", 48, "train_one_epoch"};
  clip.steps = {0, 411, 412};
  clip.evidence = {{"norm_seen", 48211.0},
                   {"true_norm", 0.736},
                   {"max_norm", 1.0},
                   {"effective_max_norm", 1.0 / 65536},
                   {"scale", 65536.0}};
  clip.fix = "scaler.unscale_(optimizer)   # before the clip\ntorch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)";
  clip.fix_cpp = "scaler.unscale_(optimizer);  // before the clip";

  Finding schedule;
  schedule.rule = "AMP212";
  schedule.name = "scheduler-advanced-on-skip";
  schedule.severity = Severity::warning;
  schedule.title = "the learning-rate schedule advances on skipped steps";
  schedule.message = "The schedule advanced 412 times while the optimizer made 403 steps.";
  schedule.proof = "412 schedule steps · 403 real steps";
  schedule.culprit.op = "OneCycleLR.step";
  schedule.culprit.source = trace::SourceLine{"/project/reader/train.py", 53, "train_one_epoch"};
  schedule.steps = {0, 301, 9};
  schedule.evidence = {{"schedule", std::string("OneCycleLR")}, {"schedule_steps", 412.0}, {"real_steps", 403.0}};
  schedule.fix = "if scaler.get_scale() >= scale_before: scheduler.step()";
  report.findings = {clip, schedule, note_calibration(report.scalers.front())};
  report.not_evaluated = {{"AMP901", "region-not-observed", "a compiled region"}};
  return report;
}

Report overflow() {
  Report report = transformer("fp16");
  report.verdict = analyzers::Verdict::error;
  std::vector<std::int64_t> skipped;
  for (std::int64_t step = 41; step < 41 + 9; ++step)
    skipped.push_back(step);
  report.run.skipped_steps = skipped;
  report.scalers = {scaler(skipped, false)};
  give_all_gradients(report, -11, 7, 0.04);
  for (std::size_t i = 8; i < 14; ++i)
    report.parameters[i].nonfinite_steps = 9;

  Finding finding;
  finding.rule = "AMP401";
  finding.name = "fp16-overflow-matmul";
  finding.severity = Severity::error;
  finding.title = "the attention scores exceed fp16's largest value";
  finding.message = "aten::matmul made 12 infinite values from finite inputs; in fp32 the largest is 71 203.";
  finding.proof = "in fp32 the largest score is 71 203 · fp16 ends at 65 504";
  finding.culprit.op = "aten::matmul";
  finding.culprit.phase = Phase::forward;
  finding.culprit.module = "layers.3.attention";
  finding.culprit.source = trace::SourceLine{"/project/reader/model.py", 57, "forward"};
  finding.steps = {41, 49, 9};
  finding.evidence = {{"terms", 64.0},          {"times_the_limit", 1.087}, {"dtype", std::string("float16")},
                      {"largest_input", 312.0}, {"infinite", 12.0},         {"replay_largest", 71203.0}};
  finding.fix = "q = q * self.scale   # before the product, not after it\nscores = q @ k.transpose(-2, -1)";
  finding.symptoms = {"AMP302"};
  Finding collapse;
  collapse.rule = "AMP302";
  collapse.name = "scale-collapse";
  collapse.severity = Severity::warning;
  collapse.title = "the loss scale falls faster than it can grow";
  collapse.message = "It fell from 65 536 to 128 in 9 skips.";
  collapse.steps = {41, 49, 9};
  collapse.fix = "repair the overflow";
  finding.explained = {collapse};
  finding.chain = {
      link("aten::matmul", Phase::forward, "layers.3.attention", 312, 65400, 12, "overflows"),
      link("aten::softmax", Phase::forward, "layers.3.attention", 65400, 1, 768, "makes NaN"),
      link("aten::matmul", Phase::forward, "layers.3.attention", 1, 4, 4096, "passes on"),
      link("aten::linear", Phase::forward, "layers.3.attention.proj", 4, 4, 4096, "passes on"),
      link("aten::linear", Phase::forward, "head", 4, 4, 640, "passes on"),
      link("aten::cross_entropy_loss", Phase::forward, "", 0, 0, 1, "loss"),
      link("Optimizer.step", Phase::optimizer, "", 0, 0, 0, "skipped step"),
  };
  report.findings = {finding};
  for (OpRow& op : report.ops) {
    if (op.module != "layers.3.attention" || op.phase != "forward") continue;
    op.first_nonfinite_step = 41;
    op.nonfinite_calls = 9;
  }
  report.nonfinite = {
      {41, 17, "producer", "aten::matmul", "forward", "layers.3.attention", "model.py:57", "fp16", 0, 12, 4096},
      {41, 18, "producer", "aten::softmax", "forward", "layers.3.attention", "model.py:58", "fp16", 768, 0, 4096}};
  analyzers::FlightRow& flight = report.flight.emplace_back();
  flight.step = 41;
  for (std::int64_t i = 0; i < 64; ++i) {
    const OpRow& op = report.ops[static_cast<std::size_t>(i) % report.ops.size()];
    analyzers::RecentCallRow& call = flight.calls.emplace_back();
    call = {i, i < 32 ? 40 : 41, op.site, {}, i >= 60};
    if (i % 3 != 1) call.absmax = std::ldexp(1.0, static_cast<int>(i) / 4);
  }
  for (OpRow& op : report.ops) {
    if (op.phase == "forward" && op.dtype_out == "fp16") {
      op.rounding = analyzers::RoundingSummary{"fp16", "fp32", 4, 16384, 0.27, 3.5, 1024, 1027.5, 0.021, 0.00031, 0};
    }
  }
  for (analyzers::SeriesRow& row : report.series) {
    for (trace::SeriesPoint& point : row.points) {
      if (point.first_step >= 40 && point.first_step <= 48) {
        point.nonfinite = row.name == "loss" ? point.count : 0;
      }
    }
  }
  return report;
}

Report underflow() {
  Report report = transformer("fp16");
  report.verdict = analyzers::Verdict::warning;
  report.scalers = {scaler({}, false)};
  report.scalers.front().settings.init_scale = 1024;
  report.scalers.front().timeline = {{0, steps - 1, 1024, 1024, false, false, {}}};
  report.scalers.front().recommendation = analyzers::ScalerSettings{262144, 2, 0.5, 2000};
  report.scalers.front().recommendation_reason = "At 2^18 nothing is flushed and nothing overflows.";
  give_all_gradients(report, -31, 10, 0.31);
  Finding finding;
  finding.rule = "AMP501";
  finding.name = "grad-underflow";
  finding.severity = Severity::warning;
  finding.title = "31 % of the gradients are flushed to zero";
  finding.message = "At loss scale 1024, 31 % of the gradient values became 0 that fp32 would keep.";
  finding.proof = "31 % flushed · scale 2^18 would keep all but 0.2 %";
  finding.steps = {0, 411, 412};
  finding.evidence = {{"share_flushed", 0.27}, {"scale", 1024.0}, {"scale_that_fits", 262144.0}};
  finding.fix = "torch.amp.GradScaler(init_scale=2.**18)";
  report.findings = {finding};
  return report;
}

Report bf16() {
  Report report = transformer("bf16");
  report.verdict = analyzers::Verdict::clean;
  report.run.level = trace::Level::ops;
  report.series.erase(report.series.begin() + 1);
  report.not_evaluated = {{"AMP501", "grad-underflow", "gradient statistics (--level grads or higher)"},
                          {"AMP202", "clip-before-unscale", "a loss scaler"}};
  report.hidden = {{"torch.compile", "forward of Net", 0.083}};
  report.run.events_dropped = 1204;
  return report;
}

Report huge(int parameters, int ops) {
  Report report = transformer("fp16");
  report.verdict = analyzers::Verdict::info;
  report.scalers = {scaler({0, 1}, true)};
  report.run.skipped_steps = {0, 1};
  report.findings = {note_calibration(report.scalers.front())};
  report.parameters.clear();
  for (int i = 0; i < parameters; ++i) {
    ParameterRow row = parameter(i, fmt::format("blocks.{}.mlp.{}", i / 4, i % 4), "weight", {256, 64});
    give_gradients(row, steps, 60, -11 - 0.01 * (i % 500), 14, 0.04);
    report.parameters.push_back(std::move(row));
  }
  OpMaker maker;
  for (int i = 0; i < ops; ++i) {
    maker.add(i % 3 == 0   ? "aten::linear"
              : i % 3 == 1 ? "aten::gelu"
                           : "aten::mm",
              i % 3 == 2 ? "backward" : "forward", fmt::format("blocks.{}.mlp.{}", i / 40, i % 4), "Linear", i % 400,
              i % 3 == 0 ? "fp32" : "fp16", "fp16", 7 + i % 91, 1 + i % 1000);
  }
  report.ops = std::move(maker.rows);
  report.run.ops = ops;
  report.run.parameters = parameters;
  return report;
}

Report hostile() {
  const std::string breakout = "</script><script>window.hacked=1</script>";
  const std::string image = "\"><img src=x onerror=window.hacked=1>";
  const std::string odd = "a`b``c \xe2\x80\xa8 \xe2\x80\xa9 \xe2\x80\xae <!-- --> &lt; {{x}} ${y} \x01 \xff";
  Report report = clipped();
  report.run.command = {"python", breakout, image, odd};
  report.run.device = breakout;
  report.run.processor = image;
  report.run.precision = image;
  report.run.ended = breakout;
  report.run.switched_off_because = breakout;
  report.run.overhead_ratio = std::numeric_limits<double>::infinity();
  Finding& finding = report.findings.front();
  finding.title = breakout;
  finding.message = image;
  finding.culprit.op = breakout;
  finding.culprit.module = image;
  finding.culprit.parameter = odd;
  finding.culprit.source = trace::SourceLine{"/project/reader/" + breakout + ".py", 3, image};
  finding.evidence.emplace_back(breakout, image);
  finding.evidence.emplace_back("__proto__", odd);
  finding.evidence.emplace_back("not_a_number", std::numeric_limits<double>::quiet_NaN());
  finding.fix = breakout + "\n```\n" + image;
  finding.fix_cpp = odd;
  finding.explained = {report.findings[1]};
  finding.explained.front().title = breakout;
  finding.chain = {link(breakout.c_str(), Phase::forward, image.c_str(), 3, 5, 1, breakout.c_str())};
  report.not_evaluated.push_back({breakout, image, odd});
  report.hidden = {{breakout, image, std::numeric_limits<double>::quiet_NaN()}};
  report.scalers.front().implementation = breakout;
  report.scalers.front().recommendation_reason = image;
  report.scalers.front().timeline.front().parameters = {breakout, image};
  report.series.front().name = "loss";
  for (OpRow& op : report.ops) {
    op.op = breakout;
    op.module = image;
    op.module_class = breakout;
    op.source = odd;
  }
  report.ops[0].module = "__proto__.constructor..";
  report.ops[0].absmax = std::numeric_limits<double>::quiet_NaN();
  report.ops[0].headroom = -std::numeric_limits<double>::infinity();
  report.parameters[0].name = breakout;
  report.parameters[1].name = image;
  report.parameters[2].name = odd;
  report.parameters[2].gradient_absmax = std::numeric_limits<double>::quiet_NaN();
  report.parameters[2].optimizer = breakout;
  return report;
}

Report empty() {
  Report report;
  report.run.command = {"./trainer"};
  report.run.language = "c++";
  report.run.damaged = true;
  report.run.switched_off_because = "no space left on device";
  return report;
}

}  // namespace ampscope::viewer_tests
