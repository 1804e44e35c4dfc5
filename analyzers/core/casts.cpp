#include "analyzers/core/casts.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/op_kinds.h"

namespace ampscope::analyzers {

using trace::DType;
using trace::Site;

namespace {

bool is_copy(const Site& site) {
  return base_name(site.name) == "copy" && site.inputs.size() >= 2;
}

int width(DType dtype) {
  return dtype == DType::float64 ? 3 : dtype == DType::float32 ? 2 : trace::is_half(dtype) ? 1 : 0;
}

bool passes_on(const Site& site) {
  return op_kind(site.name) == OpKind::move;
}

}  // namespace

StepSpan steps_of(const TraceView& view, const Site& site) {
  const trace::SiteTotals& totals = view.totals(site.id);
  const std::int64_t first = std::max<std::int64_t>(totals.first_step, 0);
  return {first, std::max(totals.last_step, first), std::max<std::int64_t>(totals.steps, 1)};
}

const trace::TensorType* cast_source(const Site& site) noexcept {
  if (is_copy(site)) return &site.inputs[1];
  return site.inputs.empty() ? nullptr : &site.inputs.front();
}

DType cast_result(const Site& site) noexcept {
  if (is_copy(site)) return site.inputs.front().dtype;
  return site.outputs.empty() ? DType::unknown : site.outputs.front().dtype;
}

bool casts_by_hand(const TraceView& view, const Site& site) {
  if (site.kind != trace::SiteKind::op || op_kind(site.name) != OpKind::cast || site.api == "custom_fwd") return false;
  if (view.outermost_op(site.id) != &site) return false;
  // No program calls it by itself: what autocast casts under vmap and grad of torch.func, and what graphs of
  // torch.compile do, stands alone.
  if (site.name == "aten::_to_copy") return false;
  const trace::TensorType* const source = cast_source(site);
  const DType result = cast_result(site);
  return source != nullptr && width(source->dtype) > 0 && width(result) > 0 && source->dtype != result;
}

bool narrows_by_hand(const TraceView& view, const Site& site) {
  return casts_by_hand(view, site) && trace::is_half(cast_result(site)) && width(cast_source(site)->dtype) > 1;
}

bool widens_by_hand(const TraceView& view, const Site& site) {
  return casts_by_hand(view, site) && trace::is_half(cast_source(site)->dtype) && width(cast_result(site)) > 1;
}

std::vector<const Site*> users_of(const TraceView& view, std::int64_t site) {
  std::vector<const Site*> users;
  std::set<std::int64_t> visited = {site};
  std::vector<std::int64_t> open = {site};
  while (!open.empty()) {
    const std::int64_t current = open.back();
    open.pop_back();
    for (const std::int64_t consumer : view.consumers(current)) {
      const Site* const outer = view.outermost_op(consumer);
      if (outer == nullptr || !visited.insert(outer->id).second) continue;
      if (passes_on(*outer)) {
        open.push_back(outer->id);
      } else {
        users.push_back(outer);
      }
    }
  }
  return users;
}

const Site* maker_of(const TraceView& view, std::int64_t producer) {
  const Site* made = nullptr;
  std::set<std::int64_t> visited;
  for (const Site* outer = view.outermost_op(producer); outer != nullptr && visited.insert(outer->id).second;) {
    made = outer;
    if (!passes_on(*outer) || outer->inputs.empty()) break;
    outer = view.outermost_op(outer->inputs.front().producer);
  }
  return made;
}

namespace {

/// Whether the result holds the values of the first argument as they are. Rows picked out of a weight (an embedding)
/// are no weight any more, but values of the model.
bool rearranges(const Site& site) {
  static constexpr auto names = std::to_array<std::string_view>(
      {"alias", "clone", "contiguous", "detach", "expand", "flatten", "narrow", "permute", "reshape", "select", "slice",
       "squeeze", "t", "transpose", "unflatten", "unsqueeze", "view"});
  return std::find(names.begin(), names.end(), base_name(site.name)) != names.end();
}

}  // namespace

bool is_weight(const TraceView& view, const trace::TensorType& tensor) {
  if (tensor.parameter != trace::none) return true;
  if (!tensor.requires_grad) return false;
  const Site* made = view.outermost_op(tensor.producer);
  for (std::set<std::int64_t> visited; made != nullptr && visited.insert(made->id).second;) {
    if (!rearranges(*made) || made->inputs.empty()) break;
    made = view.outermost_op(made->inputs.front().producer);
  }
  if (made == nullptr || !made->grad_enabled) return true;
  return std::none_of(made->outputs.begin(), made->outputs.end(),
                      [](const trace::TensorType& output) { return output.requires_grad; });
}

std::string tensor_words(const trace::TensorType& tensor) {
  return fmt::format("{} [{}]", trace::short_dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

}  // namespace ampscope::analyzers
