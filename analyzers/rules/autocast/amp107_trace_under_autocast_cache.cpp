#include <array>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const trace::Site* first = nullptr;
  std::int64_t count = 0;
  for (const trace::Site& site : view.trace().sites) {
    const bool cached = site.traced && site.autocast && site.autocast_cache && site.kind == trace::SiteKind::op;
    if (!cached || op_kind(site.name) != OpKind::matmul || view.outermost_op(site.id) != &site) continue;
    if (first == nullptr) first = &site;
    ++count;
  }
  if (first == nullptr) return;
  Finding finding = context.finding();
  finding.title = "torch.jit.trace runs under autocast with the cache of weight casts on";
  finding.culprit = context.culprit(first->id);
  finding.culprit.op = "jit.trace";
  finding.steps = steps_of(view, *first);
  finding.message = fmt::format(
      "{} were traced under {} autocast while it keeps the casts of weights. A cast that comes from the cache is no "
      "part of "
      "the trace: it becomes a constant, or the check of the trace fails.",
      plural(count, "operator"), trace::short_dtype_name(first->autocast_dtype));
  finding.proof = fmt::format("{} traced, the first is {}", plural(count, "operator"), view.describe(first->id));
  finding.evidence = {{"traced_ops", static_cast<double>(count)},
                      {"autocast_dtype", trace::dtype_name(first->autocast_dtype)}};
  finding.fix = "torch.autocast(…, cache_enabled=False) around torch.jit.trace";
  finding.fix_cpp = "at::autocast::set_autocast_cache_enabled(false) while tracing";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::ops};

}  // namespace

extern const Rule rule_amp107;
const Rule rule_amp107 = {
    .code = "AMP107",
    .name = "trace-under-autocast-cache",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "torch.jit.trace ran under autocast with the cache of casts on",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
