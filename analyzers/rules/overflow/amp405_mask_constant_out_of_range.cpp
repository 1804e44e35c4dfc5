#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

constexpr std::string_view refused = "cannot be converted to type";

Claim claim(const RuleContext& context, const Origin& origin) {
  if (mask_constant(origin)) return Claim::proven;
  return infinite_constant(context.view(), origin) != nullptr ? Claim::supported : Claim::none;
}

/// torch.tensor(1e10, dtype=torch.float16) is infinity before any operator sees it, and the number itself is gone.
void explain_tensor(const RuleContext& context, const Origin& origin, const trace::Site& user, Finding& finding) {
  const TraceView& view = context.view();
  finding.culprit = context.culprit(user.id);
  finding.title = "a constant of the program is infinity in fp16";
  finding.message = fmt::format(
      "{} takes a tensor of one fp16 value that no operator made, and it is infinite: a number beyond 65 504 was put "
      "into it. Where such a number stands for a large distance or weight, fp32 holds it. {} then makes use of it.",
      view.describe(user.id), view.describe(origin.site->id));
  finding.message += describe_outcome(origin);
  finding.proof = "a tensor of one fp16 value is infinite when it is first used · fp16 ends at 65 504";
  finding.evidence.emplace_back("limit", trace::float_limits(trace::DType::float16).max);
  add_scene(origin, finding);
  finding.fix =
      "make it in fp32: torch.tensor(value, dtype=torch.float32), and compute with it in fp32; or use a number below "
      "65 504";
  finding.fix_cpp = "make it in fp32: torch::tensor(value, torch::kFloat), or use a number below 65 504";
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  if (!mask_constant(origin)) {
    if (const trace::Site* const user = infinite_constant(context.view(), origin); user != nullptr)
      explain_tensor(context, origin, *user, finding);
    return;
  }
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const double constant = mask_constant(origin).value_or(std::numeric_limits<double>::infinity());
  const trace::DType dtype = output_dtype(event);
  const double limit = trace::float_limits(dtype).max;
  finding.title = fmt::format("the mask constant {} does not fit {}", number(constant), trace::short_dtype_name(dtype));
  finding.message = fmt::format(
      "{} turns {} into infinity in {} places; {} ends at {}. Where nothing but masked values is left, the result is "
      "NaN; in "
      "fp32 the constant is finite.",
      context.view().describe(origin.site->id), number(constant),
      count_of(static_cast<std::int64_t>(counts.infinite())), trace::short_dtype_name(dtype), number(limit));
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("constant {} · {} ends at {} · {}", number(constant), trace::short_dtype_name(dtype),
                              number(limit), describe_bad(counts));
  finding.evidence.emplace_back("constant", constant);
  finding.evidence.emplace_back("limit", limit);
  add_scene(origin, finding);
  finding.fix =
      "scores.masked_fill(mask, torch.finfo(scores.dtype).min), as a fill and not as a sum; or -inf where every row "
      "keeps "
      "a valid key";
  finding.fix_cpp = "scores.masked_fill(mask, -65504.0), as a fill and not as a sum";
}

/// The call of the program that was refused: the outermost around the latest operator on half precision that threw.
const trace::Site* refused_call(const TraceView& view) {
  const trace::Site* found = nullptr;
  for (const trace::Site& site : view.trace().sites) {
    if (view.totals(site.id).failed_calls == 0 || site.inputs.empty()) continue;
    if (trace::is_half(site.inputs.front().dtype)) found = view.outermost_op(site.id);
  }
  return found;
}

/// A fill with such a constant is refused by PyTorch, and the program ends there.
void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const auto& end = context.trace().end;
  if (!end || end->detail.find(refused) == std::string::npos || end->detail.find("overflow") == std::string::npos)
    return;
  Finding finding = context.finding();
  const std::int64_t last = std::max<std::int64_t>(context.view().steps() - 1, 0);
  finding.steps = {last, last, 1};
  if (const trace::Site* const call = refused_call(context.view())) {
    finding.culprit = context.culprit(call->id);
    if (call->source.known()) finding.culprit.source = call->source;
  }
  finding.title = "a constant does not fit the type it is filled into";
  finding.message = fmt::format(
      "The program ended with \"{}\": a fill value such as -1e9 met a tensor that autocast had made "
      "fp16, which ends at 65 504.",
      end->detail);
  finding.proof = end->detail;
  finding.evidence = {{"exception", end->detail}};
  finding.fix = "scores.masked_fill(mask, torch.finfo(scores.dtype).min), or -inf where every row keeps a valid key";
  finding.fix_cpp = "scores.masked_fill(mask, -65504.0)";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp405;
const Rule rule_amp405 = {
    .code = "AMP405",
    .name = "mask-constant-out-of-range",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "a mask constant such as -1e9 does not fit the type and becomes -inf, or raises",
    .precision_fault = true,
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
