#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

struct Function {
  std::string_view node;  ///< beginning of the autograd node's name
  const char* says;       ///< where its derivative ends
  const char* fix;
  const char* fix_cpp;
};

constexpr std::array functions = {
    Function{"Sqrt", "the square root has an infinite derivative at 0",
             "torch.sqrt(x + eps), or torch.sqrt(x.clamp(min=eps))", "torch::sqrt(x + eps)"},
    Function{"Rsqrt", "1/sqrt has no derivative at 0", "torch.rsqrt(x + eps)", "torch::rsqrt(x + eps)"},
    Function{"Pow", "a power below 1 has an infinite derivative at 0", "(x + eps) ** p, or x.clamp(min=eps) ** p",
             "torch::pow(x + eps, p)"},
    Function{"Acos", "acos has an infinite derivative at ±1",
             "torch.acos(x.clamp(-1 + 1e-6, 1 - 1e-6)) in fp32, or torch.atan2(y, x)",
             "torch::acos(x.clamp(-1 + 1e-6, 1 - 1e-6))"},
    Function{"Asin", "asin has an infinite derivative at ±1",
             "torch.asin(x.clamp(-1 + 1e-6, 1 - 1e-6)) in fp32, or torch.atan2(y, x)",
             "torch::asin(x.clamp(-1 + 1e-6, 1 - 1e-6))"},
    Function{"Acosh", "acosh has an infinite derivative at 1", "torch.acosh(x.clamp(min=1 + 1e-6))",
             "torch::acosh(x.clamp_min(1 + 1e-6))"},
    Function{"Atanh", "atanh has an infinite derivative at ±1", "torch.atanh(x.clamp(-1 + 1e-6, 1 - 1e-6))",
             "torch::atanh(x.clamp(-1 + 1e-6, 1 - 1e-6))"},
    Function{"Atan2", "atan2 has no derivative at the origin", "keep (y, x) away from (0, 0): torch.atan2(y, x + eps)",
             "torch::atan2(y, x + eps)"},
    Function{"Log", "the logarithm has an infinite derivative at 0", "torch.log(x + eps)", "torch::log(x + eps)"},
    Function{"Logaddexp", "logaddexp has no derivative where both arguments are -inf",
             "begin with a large finite number (-1e30 in fp32) where -inf stands now",
             "begin with a large finite number (-1e30 in fp32) where -inf stands now"},
    Function{"Norm", "a norm has no derivative at 0", "(x.square().sum() + eps).sqrt()",
             "(x.square().sum() + eps).sqrt()"},
    Function{"LinalgVectorNorm", "a norm has no derivative at 0", "(x.square().sum() + eps).sqrt()",
             "(x.square().sum() + eps).sqrt()"},
    Function{"LinalgEigh", "eigenvectors have no derivative where eigenvalues are equal",
             "add a small different amount to each diagonal element, or use the eigenvalues alone",
             "add a small different amount to each diagonal element, or use the eigenvalues alone"},
    Function{"LinalgSvd", "singular vectors have no derivative where singular values are equal",
             "add a small different amount to each diagonal element, or use the singular values alone",
             "add a small different amount to each diagonal element, or use the singular values alone"},
};

constexpr Function unknown{"", "the derivative divides by zero",
                           "keep the argument away from where the derivative is infinite: add eps to it, or clamp it",
                           "keep the argument away from where the derivative is infinite: add eps to it, or clamp it"};

const Function& function_of(std::string_view node) {
  // The longest name that fits: Acosh is not Acos.
  const Function* best = &unknown;
  for (const Function& each : functions) {
    if (node.starts_with(each.node) && each.node.size() > best->node.size()) best = &each;
  }
  return *best;
}

bool any_zero(const trace::NonfiniteEvent& event) {
  return std::any_of(event.inputs.begin(), event.inputs.end(),
                     [](const trace::WitnessTensor& input) { return input.looked_at && input.stats.zero != 0; });
}

Claim claim(const RuleContext& context, const Origin& origin) {
  const trace::NonfiniteEvent& event = *origin.event;
  // The infinities are meant, and the forward pass is well with them.
  if (origin.site->phase == trace::Phase::backward && origin.from_intended_infinity &&
      node_of(context.view(), origin).starts_with("Logaddexp")) {
    return Claim::proven;
  }
  if (origin.phase != trace::Phase::backward || !made_here(origin) || is_hook_code(context.view(), origin))
    return Claim::none;
  if (finite_when_wider(event)) return Claim::none;
  if (divides_by_zero(origin)) return Claim::proven;
  if (!nonfinite_when_wider(event)) return Claim::none;
  // The same in higher precision, and not by dividing by what stands there: the formula itself ends.
  if (function_of(node_of(context.view(), origin)).node.empty())
    return any_zero(event) ? Claim::plausible : Claim::none;
  return Claim::supported;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& event = *origin.event;
  const NonfiniteCounts counts = output_counts(event);
  const std::string_view node = node_of(view, origin);
  const Function& function = function_of(node);
  const trace::Site* const forward = view.forward_of(origin.site->id);
  const trace::Site* const called = forward != nullptr ? view.outermost_op(forward->id) : nullptr;
  if (called != nullptr) finding.culprit.op = called->name;
  finding.title = function.says;
  finding.message = fmt::format("The forward pass of {} is finite; its derivative is not: {} of {} values are {}.",
                                view.describe(called != nullptr ? called->id : origin.site->id),
                                count_of(static_cast<std::int64_t>(counts.total())),
                                count_of(static_cast<std::int64_t>(counts.elements)),
                                counts.infinite() == 0 ? "NaN" : "infinite or NaN");
  const Divisor divisor = divisor_of(origin);
  if (divisor.known && divisor.zeros != 0 && !divisor.is_number) {
    finding.message += fmt::format(" What it divides by is exactly 0 in {} of {} places.",
                                   count_of(static_cast<std::int64_t>(divisor.zeros)),
                                   count_of(static_cast<std::int64_t>(divisor.count)));
    finding.evidence.emplace_back("zeros", static_cast<double>(divisor.zeros));
  }
  const bool rounded = divisor.tensor != nullptr && may_be_rounded(view, *divisor.tensor);
  finding.message += rounded
                         ? " No loss scale helps; fp32 gives the same at exactly this point, but low precision rounds "
                           "more values to it."
                         : " fp32 gives the same, and no loss scale helps.";
  finding.message += describe_outcome(origin);
  finding.proof = fmt::format("{} of {} derivatives · {}{}", describe_bad(counts),
                              count_of(static_cast<std::int64_t>(counts.elements)), node.empty() ? "backward" : node,
                              event.replay.done ? fmt::format(" · the same in {}", event.replay.precision) : "");
  finding.evidence.emplace_back("node", std::string(node));
  add_scene(origin, finding);
  finding.fix = function.fix;
  finding.fix_cpp = function.fix_cpp;
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP208"};

}  // namespace

extern const Rule rule_amp602;
const Rule rule_amp602 = {
    .code = "AMP602",
    .name = "infinite-derivative",
    .family = Family::not_precision,
    .severity = Severity::error,
    .summary = "a derivative is infinite at the point where it is taken: sqrt at 0, acos at ±1, a power below 1 at 0",
    .precision_fault = false,
    .needs = needs,
    .symptom_of = symptom_of,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
