#include <array>
#include <set>
#include <string_view>

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

/// The cast of a trained weight that autocast made in few steps, though what it was made for runs in many: the cache is
/// emptied only when the outermost autocast block ends.
const trace::Site* stale_cast(const TraceView& view, const trace::Site& outer) {
  constexpr std::int64_t fewest_steps = 4;
  if (!outer.autocast || !outer.grad_enabled || op_kind(outer.name) != OpKind::matmul) return nullptr;
  const trace::SiteTotals& uses = view.totals(outer.id);
  if (uses.steps < fewest_steps) return nullptr;
  for (const std::int64_t child : view.children(outer.id)) {
    const trace::Site& cast = *view.site(child);
    if (op_kind(cast.name) != OpKind::cast || cast.inputs.empty() || cast.outputs.empty()) continue;
    const trace::TensorType& weight = cast.inputs.front();
    if (!weight.requires_grad || !is_weight(view, weight) || weight.dtype != trace::DType::float32) continue;
    if (!trace::is_half(cast.outputs.front().dtype)) continue;
    const trace::SiteTotals& casts = view.totals(cast.id);
    if (casts.steps * 4 <= uses.steps && casts.last_step + 2 < uses.last_step) return &cast;
  }
  return nullptr;
}

/// Weights are changed in place by every step, and the copy that autocast keeps of them is not.
void find_stale(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (!view.any_event(trace::EventKind::optimizer_step)) return;
  std::set<std::string> modules;
  const trace::Site* first = nullptr;
  for (const trace::Site& site : view.trace().sites) {
    const bool forward = site.kind == trace::SiteKind::op && site.phase == trace::Phase::forward && !site.in_recompute;
    if (!forward || stale_cast(view, site) == nullptr) continue;
    if (first == nullptr) first = &site;
    modules.insert(view.module_of(site.id).value_or(view.describe(site.id)));
  }
  if (first == nullptr) return;
  const trace::SiteTotals& casts = view.totals(stale_cast(view, *first)->id);
  const trace::SiteTotals& uses = view.totals(first->id);
  Finding finding = context.finding();
  finding.title = "autocast goes on with casts of weights that have been updated since";
  finding.culprit = context.culprit(first->id);
  finding.steps = {casts.last_step + 1, uses.last_step, uses.last_step - casts.last_step};
  finding.message = fmt::format(
      "{} of {} runs in {}, but its weight was cast to {} in {} of them only: autocast keeps its copies until its "
      "outermost block ends, and that block spans several steps. The optimizer changes the weights; the forward pass "
      "goes on with the old ones.",
      first->name, fmt::join(modules, ", "), plural(uses.steps, "step"), trace::short_dtype_name(first->autocast_dtype),
      count_of(casts.steps));
  finding.proof = fmt::format("used in {}, cast in {} · {}", plural(uses.steps, "step"), count_of(casts.steps),
                              fmt::join(modules, ", "));
  finding.evidence = {{"steps_used", static_cast<double>(uses.steps)},
                      {"steps_cast", static_cast<double>(casts.steps)},
                      {"names", fmt::format("{}", fmt::join(modules, ", "))}};
  finding.fix = "enter autocast anew in every step, around forward pass and loss only";
  finding.fix_cpp = "a new Autocast guard in every step, or at::autocast::clear_cache() after each update";
  findings.push_back(std::move(finding));
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  find_stale(context, findings);
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
// Autocast that is left on over a whole loop keeps its casts as well.
constexpr std::array<std::string_view, 1> symptom_of = {"AMP101"};

}  // namespace

extern const Rule rule_amp103;
const Rule rule_amp103 = {
    .code = "AMP103",
    .name = "cache-under-no-grad",
    .family = Family::autocast,
    .severity = Severity::error,
    .summary = "a weight's cast is reused from the cache where it lacks its history, or after the weight was updated",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
