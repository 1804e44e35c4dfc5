#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rounding.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

bool in_optimizer(const trace::Site& site) {
  return site.kind == trace::SiteKind::op && site.phase == trace::Phase::optimizer;
}

/// The constant that is added to the root of the second moment; empty when the type holds it.
std::optional<double> vanished_eps(const trace::Site& site) {
  const std::string_view base = base_name(site.name);
  if (!in_optimizer(site) || (base != "add" && base != "foreach_add") || site.outputs.empty()) return std::nullopt;
  const trace::DType dtype = site.inputs.empty() ? site.outputs.front().dtype : site.inputs.front().dtype;
  for (std::size_t i = 0; i < site.scalars.size(); ++i) {
    if (i < site.scalar_names.size() && site.scalar_names[i] == "alpha") continue;
    if (trace::is_half(dtype) && std::abs(site.scalars[i]) < 1e-2 && rounds_to_zero(dtype, site.scalars[i])) {
      return site.scalars[i];
    }
  }
  return std::nullopt;
}

/// The division by what `site` made, in the same optimizer.
const trace::Site* division_after(const TraceView& view, const trace::Site& site) {
  for (const std::int64_t consumer : view.consumers(site.id)) {
    const trace::Site& next = *view.site(consumer);
    const std::string_view base = base_name(next.name);
    if (in_optimizer(next) && (base == "addcdiv" || base == "foreach_addcdiv" || base == "div")) return &next;
  }
  return nullptr;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const trace::Site& site : view.trace().sites) {
    const std::optional<double> eps = vanished_eps(site);
    if (!eps) continue;
    const trace::Site* const division = division_after(view, site);
    std::uint64_t zeros = 0;
    std::uint64_t elements = 0;
    std::int64_t first = trace::none;
    for (const trace::SiteNumerics* row : view.numerics(site.id)) {
      zeros += row->stats.zero;
      elements += row->stats.count;
      if (row->stats.zero != 0 && first == trace::none) first = row->step;
    }
    const trace::SiteTotals& divided = view.totals(division != nullptr ? division->id : trace::none);
    if (zeros == 0 && divided.nonfinite_calls == 0) continue;
    // Without a zero in sight: what was non-finite before the first update is none of the optimizer's doing.
    const auto& origins = context.root_cause().origins;
    const bool brought = std::any_of(origins.begin(), origins.end(), [&](const Origin& origin) {
      return origin.phase != trace::Phase::optimizer && origin.steps.first <= divided.first_nonfinite_step;
    });
    if (zeros == 0 && brought) continue;
    if (first == trace::none || (divided.first_nonfinite_step != trace::none && divided.first_nonfinite_step < first))
      first = divided.first_nonfinite_step;

    Finding finding = context.finding();
    finding.culprit = context.culprit(site.id);
    finding.culprit.phase = trace::Phase::optimizer;
    const trace::DType dtype = site.inputs.empty() ? site.outputs.front().dtype : site.inputs.front().dtype;
    const std::string type = trace::short_dtype_name(dtype);
    // The weights are spoilt from then on.
    finding.steps = {first, std::max(view.steps() - 1, first), std::max<std::int64_t>(view.steps() - first, 1)};
    finding.title = fmt::format("the optimizer's eps of {:g} is zero in {}", *eps, type);
    finding.message = fmt::format(
        "The optimizer's state is {}: {:g} is added to the root of the squared gradients and rounds to zero there, and "
        "squares of small gradients do so too. {} of the denominators are zero",
        type, *eps, elements > 0 ? share(static_cast<double>(zeros) / static_cast<double>(elements)) : "Some");
    finding.message += divided.nonfinite_calls > 0
                           ? fmt::format("; the update was non-finite from step {} on.", divided.first_nonfinite_step)
                           : ".";
    finding.proof = fmt::format("eps {:g} becomes 0 in {}", *eps, type);
    if (elements > 0)
      finding.proof += fmt::format(" · {} of {} denominators are zero", count_of(static_cast<std::int64_t>(zeros)),
                                   count_of(static_cast<std::int64_t>(elements)));
    finding.evidence = {{"eps", *eps},
                        {"dtype", trace::dtype_name(dtype)},
                        {"zero_denominators", static_cast<double>(zeros)},
                        {"denominators", static_cast<double>(elements)}};
    finding.fix =
        "keep the weights in fp32 and let autocast choose fp16 for the forward pass; with weights in a half type use "
        "eps=1e-4 or more";
    findings.push_back(std::move(finding));
    return;  // Each parameter shape may be a site of its own; it is one fault.
  }
}

constexpr std::array needs = {Stream::ops, Stream::numerics};
// Gradients that a guard of the model has made NaN leave the optimizer no good denominator either.
constexpr std::array<std::string_view, 1> symptom_of = {"AMP502"};

}  // namespace

extern const Rule rule_amp504;
const Rule rule_amp504 = {
    .code = "AMP504",
    .name = "optimizer-eps-underflow",
    .family = Family::lost_precision,
    .severity = Severity::error,
    .summary = "the optimizer's eps and its state are zero in the type of the weights",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
