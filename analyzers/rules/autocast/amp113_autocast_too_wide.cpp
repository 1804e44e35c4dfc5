#include <algorithm>
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

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const trace::Site* first = nullptr;
  std::set<std::string> covered;
  std::int64_t gaining = 0;
  std::int64_t all = 0;
  for (const trace::Site& site : view.trace().sites) {
    if (!site.autocast || site.phase == trace::Phase::backward) continue;
    if (site.kind == trace::SiteKind::range) {
      const bool optimizer = site.name.starts_with("Optimizer.step");
      if (!optimizer && site.phase != trace::Phase::data) continue;
      covered.insert(optimizer ? "the optimizer's step" : "loading of data");
      if (first == nullptr || optimizer) first = &site;
    } else if (site.kind == trace::SiteKind::op && view.outermost_op(site.id) == &site) {
      const std::int64_t calls = std::max<std::int64_t>(view.totals(site.id).calls, 1);
      all += calls;
      if (op_kind(site.name) == OpKind::matmul) gaining += calls;
    }
  }
  if (first == nullptr) return;
  const double gain = all > 0 ? static_cast<double>(gaining) / static_cast<double>(all) : 0;
  Finding finding = context.finding();
  finding.title = fmt::format("autocast also covers {}", fmt::join(covered, " and "));
  finding.culprit = context.culprit(first->id);
  finding.steps = steps_of(view, *first);
  finding.message = fmt::format(
      "{} ran while autocast was on. {} of the operators under autocast gain from it (matrix products and "
      "convolutions); the "
      "others only pay for being looked at.",
      fmt::join(covered, " and "), share(gain));
  finding.proof = fmt::format("{} under autocast · {} of its operators gain", fmt::join(covered, " and "), share(gain));
  finding.evidence = {{"covered", fmt::format("{}", fmt::join(covered, ", "))}, {"gaining_share", gain}};
  finding.fix = "end the autocast block after the loss";
  finding.fix_cpp = "let the autocast guard go out of scope after the loss";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::ops};
constexpr std::array<std::string_view, 1> symptom_of = {"AMP101"};

}  // namespace

extern const Rule rule_amp113;
const Rule rule_amp113 = {
    .code = "AMP113",
    .name = "autocast-too-wide",
    .family = Family::autocast,
    .severity = Severity::info,
    .summary = "autocast also covers the optimizer or the loading of data",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
