#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

using trace::Site;
using trace::TensorType;

/// A half and a wider tensor that met in one call.
struct Meeting {
  const TensorType* half = nullptr;
  const TensorType* full = nullptr;
};

/// Batch and instance norm take an input of any type as long as weights and running statistics share theirs.
bool normalises_with_statistics(const Site& site) {
  return base_name(site.name).find("batch_norm") != std::string_view::npos ||
         base_name(site.name).find("instance_norm") != std::string_view::npos;
}

Meeting meeting(const Site& site) {
  Meeting met;
  const std::size_t first = normalises_with_statistics(site) ? 1 : 0;
  for (std::size_t i = first; i < site.inputs.size(); ++i) {
    const TensorType& input = site.inputs[i];
    if (trace::is_half(input.dtype)) {
      if (met.half == nullptr) met.half = &input;
    } else if (trace::is_floating(input.dtype) && met.full == nullptr) {
      met.full = &input;
    }
  }
  return met;
}

/// Operators that demand one dtype of all their arguments; others promote and fail for other reasons.
bool demands_one_dtype(const Site& site) {
  static const std::set<std::string_view> names = {"index_put",
                                                   "index_put_impl",
                                                   "index_copy",
                                                   "index_add",
                                                   "scatter",
                                                   "scatter_add",
                                                   "scatter_reduce",
                                                   "masked_scatter",
                                                   "grid_sampler",
                                                   "grid_sampler_2d",
                                                   "lerp",
                                                   "dot",
                                                   "vdot",
                                                   "cdist",
                                                   "embedding_bag",
                                                   "linalg_solve",
                                                   "native_layer_norm",
                                                   "layer_norm",
                                                   "native_group_norm",
                                                   "prelu",
                                                   "addcmul",
                                                   "put",
                                                   "renorm"};
  return op_kind(site.name) == OpKind::matmul || normalises_with_statistics(site) ||
         names.contains(base_name(site.name));
}

bool innermost_failure(const TraceView& view, const Site& site) {
  const auto children = view.children(site.id);
  return std::none_of(children.begin(), children.end(),
                      [&](std::int64_t child) { return view.totals(child).failed_calls > 0; });
}

bool contains_any(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

bool failed_for_dtype(const TraceView& view) {
  return contains_any(last_words(view), {"dtype", "scalar type", "Half", "BFloat16"});
}

/// Whether what ended the program speaks of something else: two shapes that do not fit.
bool failed_for_shape(const TraceView& view) {
  return contains_any(last_words(view), {"shape", "size"}) && !contains_any(last_words(view), {"type"}) &&
         !failed_for_dtype(view);
}

/// The call whose arguments differ: the innermost that failed, or one around it, up to a custom Function, whose own
/// affair it is (AMP104).
const Site* culprit_of(const TraceView& view, const Site& failed) {
  for (const Site* at = &failed; at != nullptr; at = view.parent(*at)) {
    if (at->kind != trace::SiteKind::op) return nullptr;
    // Checkpointing leaves its second pass by an exception of its own.
    if (at->in_recompute && !failed_for_dtype(view)) return nullptr;
    const Meeting met = meeting(*at);
    if (met.half != nullptr && met.full != nullptr) return demands_one_dtype(*at) ? at : nullptr;
    // Its tensors agree, so it failed for another reason; those of an operator around it are cast by autocast.
    if (at->inputs.size() >= 2 && (met.half != nullptr || met.full != nullptr)) return nullptr;
  }
  return nullptr;
}

std::string origin_words(const TraceView& view, const TensorType& tensor) {
  if (const trace::Parameter* parameter = view.parameter(tensor.parameter)) return parameter->name;
  const Site* const made = maker_of(view, tensor.producer);
  if (made == nullptr) return tensor.requires_grad ? "a parameter" : "data or a constant";
  const char* const how = made->autocast && op_kind(made->name) == OpKind::matmul ? " under autocast" : "";
  return view.describe(made->id) + how;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (failed_for_shape(view)) return;
  std::set<std::int64_t> told;
  for (const Site& site : view.trace().sites) {
    const trace::SiteTotals& totals = view.totals(site.id);
    if (totals.failed_calls == 0 || !innermost_failure(view, site)) continue;
    const Site* const met_at = culprit_of(view, site);
    if (met_at == nullptr) continue;
    const Site& outer = *view.outermost_op(met_at->id);
    // A custom Function's own arithmetic is AMP104's affair; modules that it runs again in backward are not.
    const Site* const node = met_at->in_recompute ? nullptr : view.backward_node(outer.id);
    const Site* const around = view.parent(outer);
    if (node != nullptr ||
        (around != nullptr && around->kind == trace::SiteKind::range && around->phase == trace::Phase::forward)) {
      continue;
    }
    if (!told.insert(outer.id).second) continue;
    const Meeting inner = meeting(*met_at);
    const Meeting seen = meeting(outer);
    const TensorType& half = seen.half != nullptr ? *seen.half : *inner.half;
    const TensorType& full = seen.full != nullptr ? *seen.full : *inner.full;
    Finding finding = context.finding();
    finding.title = fmt::format("{} fails because a {} tensor meets a {} one", base_name(outer.name),
                                trace::short_dtype_name(half.dtype), trace::short_dtype_name(full.dtype));
    finding.culprit = context.culprit(outer.id);
    const std::int64_t step = std::max<std::int64_t>(view.totals(outer.id).first_failed_step, 0);
    const std::int64_t failures = std::max<std::int64_t>(view.totals(outer.id).failed_calls, 1);
    finding.steps = {step, std::max(step, view.totals(outer.id).last_step), failures};
    finding.message =
        fmt::format("{} was given {} from {} and {} from {}, which it refuses. {}", outer.name, tensor_words(half),
                    origin_words(view, half), tensor_words(full), origin_words(view, full),
                    outer.autocast ? "Autocast does not cast the arguments of this operator."
                                   : "It runs outside autocast, so nothing casts them.");
    finding.proof = fmt::format("{} from {} · {} from {}", tensor_words(half), origin_words(view, half),
                                tensor_words(full), origin_words(view, full));
    finding.evidence = {{"op", outer.name},
                        {"half", tensor_words(half)},
                        {"half_from", origin_words(view, half)},
                        {"full", tensor_words(full)},
                        {"full_from", origin_words(view, full)},
                        {"failed_calls", static_cast<double>(failures)}};
    finding.fix = outer.autocast
                      ? "give both the same dtype: make the buffer with dtype=source.dtype, or source.to(buffer.dtype)"
                      : "run it inside the autocast block, or upcast what leaves the block: output.float()";
    if (met_at->in_recompute) {
      finding.fix =
          "run the block again under the autocast of its forward pass: torch.utils.checkpoint does, or decorate with "
          "torch.amp.custom_fwd and custom_bwd";
    }
    finding.fix_cpp = "keep the autocast guard alive over it, or upcast: output.to(torch::kFloat)";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::ops};
constexpr std::array<std::string_view, 2> symptom_of = {"AMP112", "AMP104"};

}  // namespace

extern const Rule rule_amp108;
const Rule rule_amp108 = {
    .code = "AMP108",
    .name = "dtype-mismatch",
    .family = Family::autocast,
    .severity = Severity::error,
    .summary = "an operator failed because a half-precision tensor met one of another dtype",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
