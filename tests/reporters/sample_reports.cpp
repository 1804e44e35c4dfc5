#include "tests/reporters/sample_reports.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace ampscope::reporters::testing {
namespace {

using analyzers::ChainLink;
using analyzers::Finding;
using analyzers::Report;
using analyzers::Severity;
using analyzers::Verdict;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Report base() {
  Report report;
  report.run.command = {"python", "train.py", "--epochs", "3"};
  report.run.working_directory = "/project/digits";
  report.run.language = "python";
  report.run.torch_version = "2.13.0+cpu";
  report.run.python_version = "3.11.2";
  report.run.tool_version = "0.1.0";
  report.run.processor = "Example CPU";
  report.run.device = "cpu";
  report.run.precision = "fp16 autocast";
  report.run.start_time_ns = 1'767'323'045'000'000'000;  // 2026-01-02T03:04:05Z
  report.run.steps = 412;
  report.run.level = trace::Level::automatic;
  report.run.overhead_ratio = 1.0621;
  report.run.exit_status = 0;
  report.run.ended = "exit";
  report.run.ops = 96;
  report.run.parameters = 24;
  report.run.rules = 61;
  return report;
}

analyzers::ScalerReport scaler() {
  analyzers::ScalerReport scaler;
  scaler.implementation = "torch.amp.GradScaler";
  scaler.settings = {65536, 2, 0.5, 2000};
  for (std::int64_t step = 0; step < 9; ++step) {
    const double scale = 65536.0 / static_cast<double>(1 << step);
    scaler.timeline.push_back({step, step, scale, scale / 2, true, false, {"fc1.weight", "fc2.weight"}});
  }
  scaler.timeline.push_back({9, 411, 128, 128, false, false, {}});
  return scaler;
}

Finding clip() {
  Finding finding;
  finding.rule = "AMP202";
  finding.name = "clip-before-unscale";
  finding.severity = Severity::error;
  finding.title = "gradients are clipped while they are still scaled";
  finding.message =
      "The clip saw a norm of 48 211 where the true norm was 0.736, so max_norm 1.0 acted like 0.0000153.";
  finding.proof = "norm seen 48 211 · true norm 0.736 · max_norm 1.0 acts like 0.0000153";
  finding.culprit.op = "clip_grad_norm_";
  finding.culprit.phase = trace::Phase::optimizer;
  finding.culprit.source = trace::SourceLine{"/project/digits/train.py", 48, "train"};
  finding.steps = {0, 411, 412};
  finding.evidence = {{"norm_seen", 48211.0}, {"true_norm", 0.736}, {"scale", 65536.0}, {"clip", std::string("norm")}};
  finding.fix = "scaler.unscale_(optimizer)   before the clip";
  finding.fix_cpp = "scaler.unscale_(optimizer);   before the clip";
  return finding;
}

Finding note() {
  Finding finding;
  finding.rule = "AMP301";
  finding.name = "calibration-ok";
  finding.severity = Severity::info;
  finding.title = "the first 3 steps were skipped while the loss scale settled, as it is meant to";
  finding.message = "The scale settled at 8192 after 3 skips.";
  finding.proof = "settled at 8192";
  finding.steps = {0, 2, 3};
  finding.fix = "nothing; init_scale=8192 would save the 3 skips";
  return finding;
}

Finding collapse() {
  Finding finding;
  finding.rule = "AMP302";
  finding.name = "scale-collapse";
  finding.severity = Severity::warning;
  finding.title = "the loss scale falls faster than it can grow";
  finding.message = "It fell from 65536 to 1 in 17 skips.";
  finding.proof = "65536 → 1 in 17 skips";
  finding.steps = {40, 56, 17};
  finding.fix = "repair the overflow that makes the gradients non-finite";
  return finding;
}

ChainLink link(const char* op, trace::Phase phase, const char* module, int line, double in, double out,
               std::int64_t nonfinite, const char* note_text) {
  ChainLink link;
  link.step = 41;
  link.op = op;
  link.phase = phase;
  link.module = module;
  link.source = trace::SourceLine{"/project/digits/model/attention.py", line, "forward"};
  link.dtype = trace::DType::float16;
  link.input_absmax = in;
  link.output_absmax = out;
  link.nonfinite = nonfinite;
  link.note = note_text;
  return link;
}

analyzers::ParameterRow parameter() {
  analyzers::ParameterRow row;
  row.name = "fc1.weight";
  row.dtype = "fp32";
  row.shape = {128, 64};
  row.count = std::int64_t{128} * 64;
  row.module = "fc1";
  row.optimizer = "Adam";
  row.gradient_absmax = 0.25;
  row.gradient_zero_share = 0.125;
  row.gradient_subnormal_share = 0.0625;
  row.nonfinite_steps = 9;
  analyzers::GradientBin bin;
  bin.first_step = 0;
  bin.last_step = 7;
  bin.scale_log2 = 15.5;
  bin.stats.count = 100;
  bin.stats.zero = 10;
  bin.stats.nan = 2;
  bin.stats.positive_infinity = 3;
  bin.stats.negative_infinity = 1;
  bin.stats.absmax = 0.25;
  bin.stats.exponents.first = -12;
  bin.stats.exponents.counts = {1, 0, 83};
  row.gradients = {bin};
  return row;
}

}  // namespace

Report clipped_while_scaled() {
  Report report = base();
  report.verdict = Verdict::error;
  for (std::int64_t step = 0; step < 9; ++step)
    report.run.skipped_steps.push_back(step);
  report.findings = {clip(), note()};
  report.scalers = {scaler()};

  analyzers::OpRow op;
  op.site = 3;
  op.op = "aten::linear";
  op.phase = "forward";
  op.module = "fc1";
  op.module_class = "Linear";
  op.source = "model.py:12";
  op.dtype_before = "fp32";
  op.dtype_after = "fp16";
  op.dtype_out = "fp16";
  op.autocast = true;
  op.calls = 412;
  op.bytes = 843'776;
  op.time_ns = 12'000'000;
  op.absmax = 31.5;
  op.headroom = 11;
  op.rounding = analyzers::RoundingSummary{"fp16", "fp32", 3, 1536, 0.26, 3.5, 1024, 1027.5, 0.02, 0.00031, 2};
  report.ops = {op};
  report.parameters = {parameter()};
  report.nonfinite = {{0, 17, "producer", "aten::mul", "backward", "fc2", "train.py:44", "fp16", 0, 12, 640}};
  report.flight = {{0, {{16, 0, op.site, 31.5, false}, {17, 0, op.site, {}, true}}}};
  trace::SeriesPoint loss;
  loss.name = "loss";
  loss.last_step = 7;
  loss.count = 8;
  loss.mean = 2.3;
  loss.min = 2.1;
  loss.max = 2.5;
  report.series = {{"loss", {loss}}};
  return report;
}

Report healthy() {
  Report report = base();
  report.run.precision = "bf16 autocast";
  report.verdict = Verdict::clean;
  report.not_evaluated = {{"AMP501", "grad-underflow", "gradient statistics (--level grads or higher)"},
                          {"AMP506", "update-below-ulp", "gradient statistics (--level grads or higher)"},
                          {"AMP702", "unaligned-dims", "a CUDA device"}};
  report.hidden = {{"torch.compile", "forward", 0.08}};
  return report;
}

Report overflow_with_chain() {
  Report report = base();
  report.verdict = Verdict::error;
  report.run.device = "cuda:0 NVIDIA H200";
  report.run.ranks = 4;
  report.run.exit_status = 137;
  report.run.skipped_steps = {41};
  Finding finding;
  finding.rule = "AMP401";
  finding.name = "fp16-overflow-matmul";
  finding.severity = Severity::error;
  finding.title = "the attention scores exceed fp16's largest value";
  finding.message = "aten::matmul made 12 infinite elements from finite inputs; in fp32 the largest is 71 203.";
  finding.proof = "in fp32 the largest score is 71 203 · fp16 ends at 65 504 · 1.09 times too large";
  finding.culprit.op = "aten::matmul";
  finding.culprit.phase = trace::Phase::forward;
  finding.culprit.module = "encoder.blocks.3.attention";
  finding.culprit.source = trace::SourceLine{"/project/digits/model/attention.py", 57, "forward"};
  finding.steps = {41, 56, 17};
  finding.steps.count = 9;
  finding.evidence = {{"absmax_fp32", 71203.0}, {"limit", 65504.0}};
  finding.fix = "q = q * self.scale   # before the product, not after it\nscores = q @ k.transpose(-2, -1)";
  finding.symptoms = {"AMP302", "AMP802"};
  finding.explained = {collapse()};
  finding.chain = {
      link("aten::matmul", trace::Phase::forward, "encoder.blocks.3.attention", 57, 312, 65504, 12, "overflows"),
      link("aten::softmax", trace::Phase::forward, "encoder.blocks.3.attention", 58, 65504, 1, 768, "inf - inf"),
      link("aten::matmul", trace::Phase::forward, "encoder.blocks.3.attention", 59, 1, 4, 4096, "passes on"),
      link("aten::linear", trace::Phase::forward, "encoder.blocks.3.proj", 63, 4, 4, 4096, "passes on"),
      link("aten::add", trace::Phase::forward, "encoder.blocks.3", 80, 4, 4, 4096, "passes on"),
      link("aten::linear", trace::Phase::forward, "head", 91, 4, 4, 640, "passes on"),
      link("aten::nll_loss", trace::Phase::forward, "", 97, 0, 0, 1, "loss"),
  };
  report.findings = {finding};
  report.scalers = {scaler()};
  return report;
}

Report many_findings() {
  Report report = base();
  report.verdict = Verdict::error;
  for (int i = 0; i < 8; ++i) {
    Finding finding = i < 3 ? clip() : collapse();
    finding.culprit.parameter = fmt::format("layers.{}.weight", i);
    finding.steps = {i, i, 1};
    report.findings.push_back(std::move(finding));
  }
  report.findings.push_back(note());
  return report;
}

Report nothing_seen() {
  Report report;
  report.run.command = {"./trainer"};
  report.run.language = "c++";
  report.run.damaged = true;
  report.run.events_dropped = 1204;
  report.run.switched_off_because = "no space left on device";
  return report;
}

Report hostile() {
  Report report = base();
  report.verdict = Verdict::warning;
  report.run.command = {"python", "-c", "print('\xff\xfe')"};
  report.run.precision = "fp16\x1b[31m";
  report.run.overhead_ratio = infinity;
  Finding finding = clip();
  finding.severity = Severity::warning;
  finding.title = "\x1b]0;owned\x07 title\r\nsecond line \xc3\x28";
  finding.proof =
      "\xe2\x80\xae reversed \xc2\x9b"
      "31m";
  finding.message = "-->]]><script>alert(1)</script>\x01%0A::error::injected\n::error::injected";
  finding.culprit.module = "<script>alert('x')</script>";
  finding.culprit.source = trace::SourceLine{"/project/digits/a b,c:d%\x1b.py", 3, "f\xed\xa0\x80"};
  finding.evidence = {{"nan", nan}, {"up", infinity}, {"down", -infinity}, {"text \xff", std::string("\xc0\xaf")}};
  finding.fix = "echo \x1b[2J";
  report.findings = {finding};
  analyzers::ParameterRow row = parameter();
  row.name = "層.weight\xff";
  row.gradient_absmax = nan;
  report.parameters = {row};
  return report;
}

Report two_scalers() {
  Report report = base();
  report.scalers = {scaler(), scaler()};
  report.scalers[1].id = 1;
  report.scalers[1].recommendation = analyzers::ScalerSettings{8192, 2, 0.5, 2000};
  report.scalers[1].recommendation_reason = "saves 3 skips";
  return report;
}

}  // namespace ampscope::reporters::testing
