#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

bool is_ctc(std::string_view base) {
  return base.find("ctc_loss") != std::string_view::npos;
}

Claim claim(const RuleContext&, const Origin& origin) {
  if (!made_here(origin) || origin.phase == trace::Phase::backward || !is_ctc(base_name(origin.site->name)))
    return Claim::none;
  const auto& outputs = origin.event->outputs;
  if (outputs.empty() || outputs.front().stats.positive_infinity == 0) return Claim::none;
  // Sums over finite log-probabilities are finite: an infinite loss means that no alignment exists.
  return origin.event->inputs.empty() || !origin.event->inputs.front().looked_at ? Claim::plausible : Claim::proven;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const trace::TensorStats& losses = event.outputs.front().stats;
  const auto& shape = event.inputs.empty() ? event.outputs.front().type.shape : event.inputs.front().type.shape;
  finding.title = "a CTC target is longer than its input allows";
  finding.message = fmt::format(
      "{} has an infinite loss for {} of {} although all log-probabilities are finite: there is no alignment. "
      "A "
      "target needs as many input frames as labels, and one more for each label that repeats.",
      context.view().describe(origin.site->id), count_of(static_cast<std::int64_t>(losses.positive_infinity)),
      plural(static_cast<std::int64_t>(losses.count), "sample"));
  if (shape.size() >= 2) {
    finding.message += fmt::format(" The input has {} frames.", count_of(shape.front()));
    finding.evidence.emplace_back("frames", static_cast<double>(shape.front()));
  }
  finding.message += " fp32 gives the same.";
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("{} of {} infinite from finite log-probabilities",
                              count_of(static_cast<std::int64_t>(losses.positive_infinity)),
                              plural(static_cast<std::int64_t>(losses.count), "sample"));
  finding.evidence.emplace_back("samples", static_cast<double>(losses.positive_infinity));
  add_scene(origin, finding);
  finding.fix =
      "drop samples whose target is longer than the input (count repeats twice), or F.ctc_loss(…, zero_infinity=True)";
  finding.fix_cpp = "drop such samples, or torch::nn::functional::CTCLossFuncOptions().zero_infinity(true)";
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp607;
const Rule rule_amp607 = {
    .code = "AMP607",
    .name = "infeasible-alignment",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "a CTC loss is infinite because a target does not fit into its input",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
