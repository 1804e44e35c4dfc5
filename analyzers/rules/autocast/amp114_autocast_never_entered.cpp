#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::Site;

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Site* made = nullptr;
  std::int64_t products = 0;
  for (const Site& site : view.trace().sites) {
    if (site.name == "torch.autocast" && site.kind == trace::SiteKind::range) {
      if (view.totals(site.id).calls > 0) continue;
      if (made == nullptr) made = &site;
      continue;
    }
    const bool forward = site.kind == trace::SiteKind::op && site.phase == trace::Phase::forward && site.grad_enabled;
    // Inside an operator autocast casts weights with gradients on, also where the program has turned them off.
    if (!forward || view.outermost_op(site.id) != &site) continue;
    if (site.autocast) return;  // the training does run under autocast, entered elsewhere
    if (op_kind(site.name) == OpKind::matmul && site.compute_dtype == trace::DType::float32) {
      products += std::max<std::int64_t>(view.totals(site.id).calls, 1);
    }
  }
  if (made == nullptr || products == 0) return;
  Finding finding = context.finding();
  finding.title = "an autocast object is made but never entered: the forward pass runs in fp32";
  finding.culprit = context.culprit(made->id);
  finding.culprit.op = "torch.autocast";
  finding.culprit.phase = trace::Phase::forward;
  finding.steps = {0, std::max<std::int64_t>(view.steps() - 1, 0), std::max<std::int64_t>(view.steps(), 1)};
  finding.message = fmt::format(
      "torch.autocast(\"{}\", dtype={}) at {} only makes an object; nothing enters it. {} of the forward pass ran in "
      "fp32.",
      made->autocast_device, trace::dtype_name(made->autocast_dtype), view.place(made->source),
      plural(products, "matrix product"));
  finding.proof = fmt::format("entered 0 times · {} in fp32", plural(products, "matrix product"));
  finding.evidence = {{"dtype", trace::dtype_name(made->autocast_dtype)},
                      {"device", made->autocast_device},
                      {"products_in_fp32", static_cast<double>(products)}};
  finding.fix = "with torch.autocast(…):   around the forward pass and the loss";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::ops};

}  // namespace

extern const Rule rule_amp114;
const Rule rule_amp114 = {
    .code = "AMP114",
    .name = "autocast-never-entered",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "an autocast object is made but never entered while the forward pass runs in fp32",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
