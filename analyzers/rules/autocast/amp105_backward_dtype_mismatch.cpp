#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::DType;
using trace::Site;

/// The only half type that the operators below a site compute in; unknown when there is none or more than one.
DType half_of(const TraceView& view, const Site& site, const Site** example) {
  DType half = DType::unknown;
  bool both = false;
  const auto look = [&](auto&& self, const Site& each) -> void {
    if (each.kind == trace::SiteKind::op && trace::is_half(each.compute_dtype) && op_kind(each.name) != OpKind::cast &&
        op_kind(each.name) != OpKind::move && !each.in_recompute) {
      both = both || (half != DType::unknown && half != each.compute_dtype);
      half = each.compute_dtype;
      if (example != nullptr && (*example == nullptr || op_kind(each.name) == OpKind::matmul)) *example = &each;
    }
    for (const std::int64_t child : view.children(each.id))
      self(self, *view.site(child));
  };
  look(look, site);
  return both ? DType::unknown : half;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Site* worst = nullptr;
  const Site* worst_forward = nullptr;
  DType forward_dtype = DType::unknown;
  DType backward_dtype = DType::unknown;
  std::int64_t count = 0;
  StepSpan steps;
  for (const Site& node : view.trace().sites) {
    if (node.kind != trace::SiteKind::backward_node) continue;
    const Site* const forward = view.forward_of(node.id);
    if (forward == nullptr) continue;
    const DType before = half_of(view, *view.outermost_op(forward->id), nullptr);
    const Site* example = nullptr;
    const DType after = half_of(view, node, &example);
    if (before == DType::unknown || after == DType::unknown || before == after) continue;
    // In nodes of torch hooks run as well, which may round gradients on purpose (compression).
    if (is_torch_node(node.name) && op_kind(example->name) == OpKind::create) continue;
    ++count;
    if (worst != nullptr && view.totals(worst->id).calls >= view.totals(example->id).calls) continue;
    worst = example;
    worst_forward = view.outermost_op(forward->id);
    forward_dtype = before;
    backward_dtype = after;
    steps = steps_of(view, *example);
  }
  if (worst == nullptr) return;
  Finding finding = context.finding();
  finding.title = fmt::format("the forward pass runs in {}, its backward pass in {}",
                              trace::short_dtype_name(forward_dtype), trace::short_dtype_name(backward_dtype));
  finding.culprit = context.culprit(worst->id);
  finding.culprit.phase = trace::Phase::backward;
  if (worst->source.known()) finding.culprit.source = worst->source;
  finding.steps = steps;
  finding.message = fmt::format(
      "{} computes in {} what {} computed in {}; {} do so. {}", worst->name, trace::short_dtype_name(backward_dtype),
      view.describe(worst_forward->id), trace::short_dtype_name(forward_dtype), plural(count, "backward node"),
      backward_dtype == DType::float16 ? "fp16 ends at 65504, where bf16 values are still small."
                                       : "bf16 keeps 8 bits of what fp16 kept 11 of.");
  finding.proof = fmt::format("{}: {} forward, {} backward", base_name(worst->name),
                              trace::short_dtype_name(forward_dtype), trace::short_dtype_name(backward_dtype));
  finding.evidence = {{"op", worst->name},
                      {"forward_dtype", trace::dtype_name(forward_dtype)},
                      {"backward_dtype", trace::dtype_name(backward_dtype)},
                      {"nodes", static_cast<double>(count)}};
  finding.fix =
      fmt::format("let backward use {} too: no cast to {} in a backward or a gradient hook, custom_bwd with custom_fwd",
                  trace::short_dtype_name(forward_dtype), trace::short_dtype_name(backward_dtype));
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::ops};
// Autocast that is on in backward casts everything there; that is then the cause.
constexpr std::array<std::string_view, 1> symptom_of = {"AMP101"};

}  // namespace

extern const Rule rule_amp105;
const Rule rule_amp105 = {
    .code = "AMP105",
    .name = "backward-dtype-mismatch",
    .family = Family::autocast,
    .severity = Severity::error,
    .summary = "forward ran in one low precision, its backward in another",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
