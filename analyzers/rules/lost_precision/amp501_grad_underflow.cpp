#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/gradient_loss.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

constexpr std::size_t named_parameters = 5;

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const double notable = context.parameter("min_share");
  const GradientLoss loss = measure_gradient_loss(view, notable);
  if (loss.share < notable || loss.steps.count == 0) return;
  // Where the largest scale that fits is in use already, some loss at the lower end is the price of fp16.
  if (!loss.better_scale && loss.share < context.parameter("unavoidable_share")) return;

  Finding finding = context.finding();
  if (loss.share >= context.parameter("error_share")) finding.severity = Severity::error;
  finding.title = fmt::format("{} of the gradients are flushed to zero", share(loss.share));
  finding.steps = loss.steps;
  finding.culprit.phase = trace::Phase::backward;
  finding.culprit.op = "gradient";
  if (loss.cast_site != trace::none) finding.culprit = context.culprit(loss.cast_site);
  std::string names;
  for (std::size_t i = 0; i < std::min(named_parameters, loss.parameters.size()); ++i) {
    const trace::Parameter* const parameter = view.parameter(loss.parameters[i].parameter);
    if (parameter == nullptr) continue;
    if (!finding.culprit.parameter) finding.culprit.parameter = parameter->name;
    names += fmt::format("{}{} {}", names.empty() ? "" : ", ", parameter->name, share(loss.parameters[i].share));
  }
  finding.message =
      fmt::format("About {} of all gradient elements became zero in fp16 that fp32 would keep, at a loss scale of {}",
                  share(loss.share), scale(loss.scale));
  if (!names.empty()) finding.message += fmt::format("; most in {}", names);
  finding.message += '.';
  finding.proof = fmt::format("{} flushed to zero at scale {}", share(loss.share), scale(loss.scale));
  if (loss.all_zero > 0)
    finding.proof += fmt::format(" · {} of {} parameters entirely", loss.all_zero, view.trace().parameters.size());
  finding.evidence = {{"share_flushed", loss.share},
                      {"scale", loss.scale},
                      {"parameters_lost_entirely", static_cast<double>(loss.all_zero)},
                      {"worst_parameters", names}};
  if (loss.cast_share > 0) {
    finding.evidence.emplace_back("largest_loss_in_one_op", loss.cast_share);
    finding.evidence.emplace_back("op", view.describe(loss.cast_site));
  }
  if (loss.better_scale) {
    finding.evidence.emplace_back("scale_that_fits", *loss.better_scale);
    finding.message +=
        fmt::format(" A scale of {} {}.", scale(*loss.better_scale),
                    loss.better_scale_keeps_all ? "would keep them" : "is the largest that fits, and keeps most");
    finding.proof +=
        fmt::format(" · {} {}", scale(*loss.better_scale), loss.better_scale_keeps_all ? "keeps them" : "keeps most");
    finding.fix =
        view.scaled()
            ? fmt::format("start from a larger scale: GradScaler(init_scale={:g}), and look at what made it small",
                          *loss.better_scale)
            : fmt::format("scale the loss: GradScaler(init_scale={:g})", *loss.better_scale);
  } else {
    finding.message += " The largest scale that fits is in use, so the gradients' range is wider than fp16's.";
    finding.fix = "train in bfloat16, or keep the layers with the smallest gradients in fp32";
  }
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol, Stream::gradients};
constexpr std::array parameters = {
    ParameterSpec{"min_share", 0.01, 0.0001, 1, false,
                  "share of gradient elements flushed to zero from which it is reported"},
    ParameterSpec{"error_share", 0.1, 0.0001, 1, false, "share from which it is an error"},
    ParameterSpec{"unavoidable_share", 0.05, 0.0001, 1, false,
                  "share from which it is reported although no larger scale fits"},
};
constexpr std::array<std::string_view, 5> symptom_of = {"AMP201", "AMP202", "AMP205", "AMP302", "AMP305"};

}  // namespace

extern const Rule rule_amp501;
const Rule rule_amp501 = {
    .code = "AMP501",
    .name = "grad-underflow",
    .family = Family::lost_precision,
    .severity = Severity::warning,
    .summary = "a notable share of gradients is flushed to zero that fp32 would keep",
    .needs = needs,
    .parameters = parameters,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
