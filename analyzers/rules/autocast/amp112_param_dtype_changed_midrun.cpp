#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const trace::Parameter* first = nullptr;
  trace::DType from = trace::DType::unknown;
  std::int64_t count = 0;
  std::int64_t last = 0;
  std::string names;
  for (const trace::Parameter& parameter : view.trace().parameters) {
    const trace::Parameter* const before = view.parameter(parameter.replaces);
    if (before == nullptr || before->dtype == parameter.dtype || before->dtype == trace::DType::unknown) continue;
    ++count;
    last = std::max(last, parameter.first_step);
    if (names.size() < 200) names += (names.empty() ? "" : ", ") + parameter.name;
    if (first != nullptr && first->first_step <= parameter.first_step) continue;
    first = &parameter;
    from = before->dtype;
  }
  if (first == nullptr) return;
  Finding finding = context.finding();
  const std::string change =
      fmt::format("{} → {}", trace::short_dtype_name(from), trace::short_dtype_name(first->dtype));
  const std::int64_t step = std::max<std::int64_t>(first->first_step, 0);
  finding.title = fmt::format("trainable parameters change their dtype during the run ({})", change);
  finding.culprit.parameter = first->name;
  finding.culprit.phase = trace::Phase::other;
  if (!first->module.empty()) finding.culprit.module = first->module;
  if (const trace::Site* cast = view.outermost_op(first->made_by); cast != nullptr) {
    finding.culprit.op = cast->api.empty() ? cast->name : cast->api;
    finding.culprit.site = cast->id;
    if (const trace::SourceLine source = view.source_of(cast->id); source.known()) finding.culprit.source = source;
  }
  finding.steps = {step, std::max(step, std::max(last, view.steps() - 1)),
                   std::max<std::int64_t>(view.steps() - step, 1)};
  finding.message = fmt::format(
      "{} ({}) had been {} before step {} and were {} from then on. The optimizer's state, its update and the "
      "gradients now "
      "mix both, and what the weights held beyond {} is lost.",
      plural(count, "parameter"), names, trace::short_dtype_name(from), step, trace::short_dtype_name(first->dtype),
      trace::short_dtype_name(trace::is_half(first->dtype) ? first->dtype : from));
  finding.proof = fmt::format("{} {} at step {}", plural(count, "parameter"), change, step);
  finding.evidence = {{"parameters", static_cast<double>(count)},
                      {"names", names},
                      {"from", trace::dtype_name(from)},
                      {"to", trace::dtype_name(first->dtype)},
                      {"step", static_cast<double>(step)}};
  finding.fix = "leave the model's dtype alone while it trains; cast a copy: copy.deepcopy(model).half()";
  finding.fix_cpp = "leave the module's dtype alone while it trains; cast a clone of it";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp112;
const Rule rule_amp112 = {
    .code = "AMP112",
    .name = "param-dtype-changed-midrun",
    .family = Family::autocast,
    .severity = Severity::error,
    .summary = "a trainable parameter's dtype changes during the run",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
