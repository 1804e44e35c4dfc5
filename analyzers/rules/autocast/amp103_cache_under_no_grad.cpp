#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

/// The weight that a product under autocast was given without history although the weight itself needs a gradient: what
/// autocast called inside has a half-precision tensor of the weight's shape that requires none.
const trace::TensorType* lost_weight(const TraceView& view, const trace::Site& outer) {
  if (!outer.autocast || !outer.grad_enabled || op_kind(outer.name) != OpKind::matmul) return nullptr;
  for (const std::int64_t child : view.children(outer.id)) {
    const trace::Site& inner = *view.site(child);
    if (inner.name != outer.name || inner.inputs.size() != outer.inputs.size()) continue;
    for (std::size_t i = 0; i < outer.inputs.size(); ++i) {
      const trace::TensorType& weight = outer.inputs[i];
      const trace::TensorType& cast = inner.inputs[i];
      if (weight.requires_grad && is_weight(view, weight) && !cast.requires_grad &&
          weight.dtype == trace::DType::float32 && trace::is_half(cast.dtype) && weight.shape == cast.shape) {
        return &weight;
      }
    }
  }
  return nullptr;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  std::set<std::string> modules;
  const trace::Site* first = nullptr;
  for (const trace::Site& site : view.trace().sites) {
    const bool forward = site.kind == trace::SiteKind::op && site.phase == trace::Phase::forward && !site.in_recompute;
    if (!forward || lost_weight(view, site) == nullptr) continue;
    if (first == nullptr) first = &site;
    modules.insert(view.module_of(site.id).value_or(view.describe(site.id)));
  }
  if (first == nullptr) return;
  // The pass without gradients that filled the cache ran the same layers.
  const trace::Site* cause = nullptr;
  for (const trace::Site& site : view.trace().sites) {
    const bool same = site.autocast && !site.grad_enabled && site.name == first->name && site.module == first->module;
    if (same && site.phase == trace::Phase::forward) cause = &site;
  }
  Finding finding = context.finding();
  finding.title = "weights get no gradient because autocast reuses casts that were made without gradients";
  finding.culprit = context.culprit(first->id);
  finding.steps = steps_of(view, *first);
  finding.message = fmt::format(
      "{} of {} needs a gradient, but the {} copy that autocast took from its cache was made in a pass without "
      "gradients{}, "
      "so backward does not reach the weight.",
      first->name, fmt::join(modules, ", "), trace::short_dtype_name(first->autocast_dtype),
      cause != nullptr && view.source_of(cause->id).known() ? " at " + view.place(view.source_of(cause->id)) : "");
  finding.proof = fmt::format("{} without gradient: {}", plural(static_cast<std::int64_t>(modules.size()), "module"),
                              fmt::join(modules, ", "));
  finding.evidence = {{"modules", static_cast<double>(modules.size())},
                      {"names", fmt::format("{}", fmt::join(modules, ", "))}};
  finding.fix =
      "put the pass without gradients into an autocast block of its own, or call torch.clear_autocast_cache() after it";
  finding.fix_cpp = "at::autocast::clear_cache() after the pass without gradients";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::ops};

}  // namespace

extern const Rule rule_amp103;
const Rule rule_amp103 = {
    .code = "AMP103",
    .name = "cache-under-no-grad",
    .family = Family::autocast,
    .severity = Severity::error,
    .summary = "a weight's cast was cached without history and reused where a gradient is needed",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
