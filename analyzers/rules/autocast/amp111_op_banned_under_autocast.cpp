#include <array>
#include <string_view>

#include <fmt/format.h>

#include "analyzers/core/casts.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

// The list "banned" of aten/src/ATen/autocast_mode.h has this one entry.
constexpr std::string_view banned = "binary_cross_entropy";

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const trace::Site& site : view.trace().sites) {
    if (!site.autocast || site.kind != trace::SiteKind::op || base_name(site.name) != banned) continue;
    if (view.outermost_op(site.id) != &site) continue;
    const bool failed = view.totals(site.id).failed_calls > 0;
    Finding finding = context.finding();
    finding.title = failed ? "binary_cross_entropy fails under autocast"
                           : "binary_cross_entropy runs under CPU autocast; CUDA autocast refuses it";
    finding.culprit = context.culprit(site.id);
    finding.steps = steps_of(view, site);
    const char* const dtype = site.inputs.empty() ? "half" : trace::short_dtype_name(site.inputs.front().dtype);
    finding.message = fmt::format(
        "{} is given probabilities in {}: a probability close to 1 has been rounded to 1 by then, and its logarithm "
        "and gradient "
        "are gone. Autocast on CUDA raises an error here.",
        site.name, dtype);
    finding.proof =
        fmt::format("binary_cross_entropy of {} probabilities under {} autocast", dtype, site.autocast_device);
    finding.evidence = {{"op", site.name},
                        {"input_dtype", dtype},
                        {"device", site.autocast_device},
                        {"failed_calls", static_cast<double>(view.totals(site.id).failed_calls)}};
    finding.fix = "BCEWithLogitsLoss (binary_cross_entropy_with_logits) on the logits, without the sigmoid";
    finding.fix_cpp = "torch::binary_cross_entropy_with_logits on the logits, without the sigmoid";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::ops};

}  // namespace

extern const Rule rule_amp111;
const Rule rule_amp111 = {
    .code = "AMP111",
    .name = "op-banned-under-autocast",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "an operator that CUDA autocast refuses runs under autocast",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
