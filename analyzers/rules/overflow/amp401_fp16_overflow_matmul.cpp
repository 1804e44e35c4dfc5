#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"
#include "analyzers/rootcause/range.h"

namespace ampscope::analyzers {

namespace {

Claim claim(const RuleContext& context, const Origin& origin) {
  if (origin.op != OpKind::matmul || origin.from_intended_infinity) return Claim::none;
  const trace::DType dtype = compute_dtype(*origin.event, *origin.site);
  if (dtype != trace::DType::float16) return Claim::none;
  // The operator to blame is another than the one that was looked at: its own inputs are not known.
  if (origin.site->id != origin.event->site) return Claim::plausible;
  if (origin.kind != trace::OriginKind::producer && origin.kind != trace::OriginKind::unknown) return Claim::none;
  return behind_wider_cause(context.view(), origin, judge_overflow(*origin.event, dtype, largest_product(origin)));
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const bool backward = origin.phase == trace::Phase::backward;
  finding.title = fmt::format("a matrix product{} overflows fp16", backward ? " of the backward pass" : "");
  finding.message = fmt::format("{} makes the first non-finite values ({} of {}) from finite inputs.",
                                context.view().describe(origin.site->id), describe_bad(counts),
                                count_of(static_cast<std::int64_t>(counts.elements)));
  const auto largest = input_absmax(event);
  const auto terms = inner_dimension(*origin.site, event);
  if (largest) {
    finding.message += fmt::format(" Its inputs are up to {}{}; fp16 ends at 65 504.", number(*largest),
                                   terms ? fmt::format(" and {} products are summed", count_of(*terms)) : "");
    finding.proof = fmt::format("inputs up to {}", number(*largest));
  }
  if (terms) {
    finding.evidence.emplace_back("terms", static_cast<double>(*terms));
    finding.proof += fmt::format("{}{} products summed", finding.proof.empty() ? "" : " · ", count_of(*terms));
  }
  if (event.replay.done) {
    const double beyond = event.replay.absmax / trace::float_limits(trace::DType::float16).max;
    finding.message += fmt::format(" Computed in {} the result is finite, with {} as its largest: {}× the limit.",
                                   event.replay.precision, number(event.replay.absmax), number(beyond));
    finding.evidence.emplace_back("times_the_limit", beyond);
    finding.proof += fmt::format("{}{} gives {}, fp16 ends at 65 504", finding.proof.empty() ? "" : " · ",
                                 event.replay.precision, number(event.replay.absmax));
  }
  const double factor = backward ? own_loss_scale(context.view()) : 0;
  if (factor > 0) {
    finding.message += fmt::format(" The program multiplies its loss by {} itself.", number(factor));
    finding.evidence.emplace_back("own_loss_scale", factor);
    finding.proof += fmt::format("{}the loss is multiplied by {}", finding.proof.empty() ? "" : " · ", number(factor));
  }
  finding.message += describe_outcome(origin);
  if (finding.proof.empty()) finding.proof = describe_bad(counts);
  add_scene(origin, finding);
  finding.fix =
      backward
          ? "keep this module out of fp16: with torch.autocast(device_type, enabled=False): module(x.float()) — or "
            "train in bfloat16"
          : "make its inputs smaller (normalise, divide before the product), or keep it out of fp16: with "
            "torch.autocast(device_type, enabled=False): module(x.float()) — or train in bfloat16";
  finding.fix_cpp =
      "make its inputs smaller, or run it on x.to(torch::kFloat) outside the autocast guard, or train in bfloat16";
  if (factor > 0) {
    finding.fix = "multiply by less, or let torch.amp.GradScaler do it, which skips such steps and lowers its scale";
    finding.fix_cpp = "multiply by less, or let ampscope::executor::GradScaler do it";
  }
}

constexpr std::array needs = {Stream::sentinel};
// Scaled gradients that went into the weights blow them up.
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp401;
const Rule rule_amp401 = {
    .code = "AMP401",
    .name = "fp16-overflow-matmul",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "a matrix product or convolution makes the first non-finite value from finite inputs in fp16",
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .holds_for_metrics = true,
    .explain = explain,
};

}  // namespace ampscope::analyzers
