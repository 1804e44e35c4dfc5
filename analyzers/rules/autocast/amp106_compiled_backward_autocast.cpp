#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::DType;
using trace::Site;

/// The sizes that a matrix product has in common with the products of its derivative: of [b, k] times [k, n] these are
/// b, k and n, in whatever order they take part.
using Sizes = std::vector<std::int64_t>;

/// The two matrices of a product; addmm and its kin have them after what they add.
std::pair<const trace::TensorType*, const trace::TensorType*> factors(const Site& site) {
  const std::string_view name = base_name(site.name);
  const std::size_t first = name == "addmm" || name == "baddbmm" || name == "addbmm" ? 1 : 0;
  if (name != "mm" && name != "bmm" && first == 0) return {};
  if (site.inputs.size() < first + 2) return {};
  return {&site.inputs[first], &site.inputs[first + 1]};
}

Sizes sizes_of(const Site& site) {
  const auto [left, right] = factors(site);
  if (left == nullptr || left->shape.size() < 2 || right->shape.size() < 2) return {};
  Sizes sizes(left->shape.end() - 2, left->shape.end());
  sizes.push_back(right->shape.back());
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

/// Products of one compiled function that have the same sizes.
struct Products {
  int forward_wide = 0;
  int forward_half = 0;
  int backward_wide = 0;
  int backward_half = 0;
  const Site* forward = nullptr;
  const Site* backward = nullptr;
};

class Region {
 public:
  Region(const TraceView& view, const Site& function, const Site& node) : view_(view) {
    collect(function, false);
    collect(node, true);
  }

  /// Products in fp32 whose derivative is computed in half.
  [[nodiscard]] std::vector<const Products*> mismatches() const {
    std::vector<const Products*> found;
    for (const auto& [sizes, products] : products_) {
      // A product of half has two half products in its derivative, and a third where it is computed again there.
      const bool too_many = products.backward_half > 3 * products.forward_half;
      if (products.forward_wide > 0 && products.backward_wide == 0 && too_many) found.push_back(&products);
    }
    return found;
  }

 private:
  void collect(const Site& site, bool backward) {
    const DType dtype = site.compute_dtype;
    const Sizes sizes = site.kind == trace::SiteKind::op ? sizes_of(site) : Sizes{};
    if (!sizes.empty()) {
      Products& products = products_[sizes];
      const bool half = trace::is_half(dtype);
      if (backward) {
        ++(half ? products.backward_half : products.backward_wide);
        if (half) products.backward = &site;
      } else {
        ++(half ? products.forward_half : products.forward_wide);
        if (!half) products.forward = &site;
      }
      return;
    }
    for (const std::int64_t child : view_.children(site.id))
      collect(*view_.site(child), backward);
  }

  const TraceView& view_;
  std::map<Sizes, Products> products_;
};

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const Site& node : view.trace().sites) {
    // The names that torch's compiler gives to the function it makes and to its derivative.
    if (node.kind != trace::SiteKind::backward_node || node.name != "CompiledFunctionBackward") continue;
    const Site* const function = view.forward_of(node.id);
    if (function == nullptr) continue;
    const Region region(view, *function, node);
    const auto mismatches = region.mismatches();
    if (mismatches.empty()) continue;
    const Products& first = *mismatches.front();
    const char* const half = trace::short_dtype_name(first.backward->compute_dtype);
    std::int64_t nonfinite = 0;
    for (const Products* products : mismatches)
      nonfinite += view.totals(products->backward->id).nonfinite_calls;
    Finding finding = context.finding();
    if (nonfinite > 0) finding.severity = Severity::error;
    finding.title = fmt::format("a compiled backward pass computes in {} what its forward pass computed in fp32", half);
    finding.culprit = context.culprit(function->id);
    finding.culprit.op = "torch.compile";
    finding.culprit.phase = trace::Phase::backward;
    finding.steps = steps_of(view, node);
    const std::string sizes = fmt::format("[{}] × [{}]", fmt::join(factors(*first.forward).first->shape, ", "),
                                          fmt::join(factors(*first.forward).second->shape, ", "));
    finding.message = fmt::format(
        "In the region compiled at {}, {} (such as {}) left autocast in forward, but torch.compile traced the "
        "derivative under the autocast that was on outside the region and casts its gradients to {}.",
        view.describe(function->id), plural(static_cast<std::int64_t>(mismatches.size()), "matrix product"), sizes,
        half);
    finding.proof = fmt::format("{} of {}: forward fp32, backward {}",
                                plural(static_cast<std::int64_t>(mismatches.size()), "product"), sizes, half);
    finding.evidence = {{"products", static_cast<double>(mismatches.size())},
                        {"backward_dtype", trace::dtype_name(first.backward->compute_dtype)},
                        {"nonfinite_calls", static_cast<double>(nonfinite)}};
    finding.fix =
        "torch._functorch.config.backward_pass_autocast = \"off\", or enter autocast inside the compiled function";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::ops};

}  // namespace

extern const Rule rule_amp106;
const Rule rule_amp106 = {
    .code = "AMP106",
    .name = "compiled-backward-autocast",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "a compiled backward pass was traced under an autocast that its forward pass had left",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
