#include <array>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

std::int64_t elements(const trace::TensorType& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape)
    count *= size;
  return count;
}

std::int64_t largest(const std::vector<trace::TensorType>& tensors) {
  std::int64_t most = 0;
  for (const trace::TensorType& tensor : tensors) {
    if (trace::is_floating(tensor.dtype)) most = std::max(most, elements(tensor));
  }
  return most;
}

bool under_autocast(const TraceView& view, const trace::Site& site) {
  const trace::Site* const outer = view.outermost_op(site.id);
  return site.autocast || (outer != nullptr && outer->autocast);
}

/// A step of the loss that makes few values of many in half precision, where autocast had no say.
bool reduces_in_half(const TraceView& view, const trace::Site& site) {
  const OpKind kind = op_kind(site.name);
  if (kind != OpKind::reduction && kind != OpKind::loss && kind != OpKind::softmax) return false;
  return site.kind == trace::SiteKind::op && trace::is_half(site.compute_dtype) && !under_autocast(view, site);
}

/// Values that backward passes of training start from. autograd.grad for a penalty starts from sums of which only the
/// derivative counts, and that is one; where nothing else is differentiated it is how the program trains.
std::vector<std::int64_t> losses(const TraceView& view) {
  std::set<std::int64_t> asked;
  std::set<std::int64_t> trained;
  for (const trace::StepPattern& pattern : view.trace().patterns) {
    for (const trace::ProtocolEvent& event : pattern.events) {
      if (event.kind != trace::EventKind::backward) continue;
      ((event.flags & trace::event_flag::gradients_only) != 0 ? asked : trained).insert(event.site);
    }
  }
  std::vector<std::int64_t> found(view.loss_sites().begin(), view.loss_sites().end());
  if (!trained.empty())
    std::erase_if(found, [&](std::int64_t site) { return asked.contains(site) && !trained.contains(site); });
  return found;
}

/// Walks back from the values that backward passes start from, up to what ran under autocast. Returns the reductions on
/// the way that computed in half; `fed` tells whether an autocast operator fed one of them.
std::vector<const trace::Site*> half_reductions(const TraceView& view, bool& fed) {
  std::vector<const trace::Site*> found;
  std::set<std::int64_t> visited;
  std::vector<std::int64_t> open = losses(view);
  while (!open.empty()) {
    const std::int64_t current = open.back();
    open.pop_back();
    if (!visited.insert(current).second) continue;
    const trace::Site& site = *view.site(current);
    if (site.phase == trace::Phase::backward && !site.in_recompute) continue;
    if (under_autocast(view, site)) {
      fed = true;
      continue;
    }
    const trace::Site& outer = *view.outermost_op(current);
    if (reduces_in_half(view, outer)) {
      found.push_back(&outer);
    } else if (reduces_in_half(view, site)) {
      found.push_back(&site);
    }
    for (const std::int64_t producer : view.producers(current))
      open.push_back(producer);
  }
  return found;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  bool fed = false;
  const std::vector<const trace::Site*> reductions = half_reductions(view, fed);
  if (!fed) return;
  const trace::Site* worst = nullptr;
  std::int64_t terms = 0;
  for (const trace::Site* site : reductions) {
    // Of a loss inside a loss (nll_loss in cross_entropy) the one that the program called is named.
    const std::int64_t count = largest(site->inputs);
    const bool better = worst == nullptr || count > terms ||
                        (count == terms && op_kind(site->name) == OpKind::loss && op_kind(worst->name) != OpKind::loss);
    if (better) {
      worst = site;
      terms = count;
    }
  }
  if (worst == nullptr) return;
  const trace::SiteTotals& totals = view.totals(worst->id);
  const char* const dtype = trace::short_dtype_name(worst->compute_dtype);
  Finding finding = context.finding();
  finding.title = fmt::format("the loss is reduced in {} because it is computed outside autocast", dtype);
  finding.culprit = context.culprit(worst->id);
  finding.steps = {std::max<std::int64_t>(totals.first_step, 0),
                   std::max(totals.last_step, std::max<std::int64_t>(totals.first_step, 0)),
                   std::max<std::int64_t>(totals.steps, 1)};
  finding.message = fmt::format(
      "{} runs outside the autocast block on {} results of the block, so it is computed in {} over {}; inside the "
      "block "
      "autocast would compute a loss in fp32.",
      worst->name, dtype, dtype, plural(terms, "term"));
  finding.proof = fmt::format("{} in {} over {}", base_name(worst->name), dtype, plural(terms, "term"));
  finding.evidence = {
      {"op", worst->name}, {"dtype", trace::dtype_name(worst->compute_dtype)}, {"terms", static_cast<double>(terms)}};
  finding.fix = "compute the loss inside the autocast block, or on upcast outputs: criterion(output.float(), target)";
  finding.fix_cpp = "compute the loss while the autocast guard lives, or on output.to(torch::kFloat)";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol, Stream::ops};
// The overflow that such a reduction ends in is the verdict where it happens; this is then how it came about.
constexpr std::array<std::string_view, 3> symptom_of = {"AMP402", "AMP403", "AMP404"};

}  // namespace

extern const Rule rule_amp102;
const Rule rule_amp102 = {
    .code = "AMP102",
    .name = "loss-outside-autocast",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "a loss is reduced in fp16 or bf16 because forward was autocast and the loss was not",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
