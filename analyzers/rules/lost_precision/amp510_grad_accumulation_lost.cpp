#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rules/lost_precision/kept_writes.h"

namespace ampscope::analyzers {

namespace {

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const double min_share = context.parameter("min_share");
  std::map<std::int64_t, StepWrites> steps;
  std::map<std::int64_t, StepWrites> parameters;
  trace::DType dtype = trace::DType::unknown;
  std::int64_t site = trace::none;
  std::int64_t most_calls = 0;
  for (const trace::WriteSample& write : view.trace().writes) {
    if (write.kind != trace::WriteKind::add || !write.gradient) continue;
    steps[write.step].add(write);
    parameters[write.parameter].add(write);
    dtype = write.dtype;
    most_calls = std::max(most_calls, write.calls);
    if (site == trace::none) site = write.site;
  }
  double concerned = 0;
  double changed = 0;
  StepSpan span;
  for (const auto& [step, writes] : steps) {
    concerned += writes.concerned;
    changed += writes.changed;
    if (writes.unchanged() < min_share) continue;
    if (span.count == 0) span.first = step;
    span.last = step;
    ++span.count;
  }
  const double lost = concerned > 0 ? 1 - changed / concerned : 0;
  if (lost < min_share || span.count == 0) return;

  Finding finding = context.finding();
  const std::string type = trace::short_dtype_name(dtype);
  finding.culprit = context.culprit(site);
  std::int64_t worst = trace::none;
  for (const auto& [id, writes] : parameters) {
    if (worst == trace::none || writes.unchanged() > parameters.at(worst).unchanged()) worst = id;
  }
  if (const trace::Parameter* const parameter = view.parameter(worst); parameter != nullptr)
    finding.culprit.parameter = parameter->name;
  finding.steps = span;
  finding.title = fmt::format("{} of the gradients that are accumulated in {} are lost", share(lost), type);
  finding.message = fmt::format(
      "Gradients are summed in {} over {} micro-batches; {} of the non-zero contributions changed nothing, because the "
      "sum was already more than {} times as large.",
      type, count_of(most_calls + 1), share(lost), number(1 / smallest_change(dtype)));
  finding.proof =
      fmt::format("{} of contributions lost · {} micro-batches in {}", share(lost), count_of(most_calls + 1), type);
  finding.evidence = {{"share_lost", lost},
                      {"micro_batches", static_cast<double>(most_calls + 1)},
                      {"dtype", trace::dtype_name(dtype)}};
  finding.fix =
      "accumulate in fp32: keep the weights in fp32 and let autocast choose the type of the forward pass, or add each "
      "micro-batch's gradient to an fp32 buffer";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol, Stream::numerics};
constexpr std::array parameters = {
    ParameterSpec{"min_share", 0.1, 0.001, 1, false,
                  "share of the non-zero contributions that change nothing, from which it is reported"},
};

}  // namespace

extern const Rule rule_amp510;
const Rule rule_amp510 = {
    .code = "AMP510",
    .name = "grad-accumulation-lost",
    .family = Family::lost_precision,
    .severity = Severity::warning,
    .summary = "gradients of micro-batches are lost when they are summed in a half type",
    .needs = needs,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
