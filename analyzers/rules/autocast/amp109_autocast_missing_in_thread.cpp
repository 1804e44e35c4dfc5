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

using trace::Site;

/// A product of the forward pass that autocast would have cast, in a thread without autocast while another had it on.
bool forgotten(const Site& site) {
  return site.autocast_elsewhere && !site.autocast && site.kind == trace::SiteKind::op &&
         site.phase == trace::Phase::forward && !site.in_recompute && site.grad_enabled &&
         site.compute_dtype == trace::DType::float32 && op_kind(site.name) == OpKind::matmul;
}

bool trains(const TraceView& view, const Site& outer) {
  const auto look = [&](auto&& self, const Site& site) -> bool {
    if (!view.backward_nodes(site.id).empty()) return true;
    for (const std::int64_t child : view.children(site.id)) {
      if (self(self, *view.site(child))) return true;
    }
    return false;
  };
  return look(look, outer);
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Site* first = nullptr;
  std::set<int> threads;
  std::set<std::string> modules;
  StepSpan steps;
  for (const Site& site : view.trace().sites) {
    if (!forgotten(site) || view.outermost_op(site.id) != &site || !trains(view, site)) continue;
    if (first == nullptr) {
      first = &site;
      steps = steps_of(view, site);
    }
    threads.insert(site.thread);
    if (const auto module = view.module_of(site.id); module) modules.insert(*module);
  }
  if (first == nullptr) return;
  Finding finding = context.finding();
  finding.title = "a forward pass in another thread runs without the autocast of its caller";
  finding.culprit = context.culprit(first->id);
  finding.steps = steps;
  finding.message = fmt::format(
      "Autocast is a state of the thread that entered it. It was on in another thread while {} computed in fp32 in "
      "{}{}.",
      view.describe(first->id), plural(static_cast<std::int64_t>(threads.size()), "thread"),
      modules.empty() ? "" : fmt::format(" (modules {})", fmt::join(modules, ", ")));
  finding.proof = fmt::format("{} without autocast · {} in fp32",
                              plural(static_cast<std::int64_t>(threads.size()), "thread"), view.describe(first->id));
  finding.evidence = {{"threads", static_cast<double>(threads.size())},
                      {"modules", fmt::format("{}", fmt::join(modules, ", "))}};
  finding.fix = "enter autocast inside the function that the thread runs, or inside the module's forward";
  finding.fix_cpp = "make the autocast guard inside the function that the thread runs";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::ops};

}  // namespace

extern const Rule rule_amp109;
const Rule rule_amp109 = {
    .code = "AMP109",
    .name = "autocast-missing-in-thread",
    .family = Family::autocast,
    .severity = Severity::warning,
    .summary = "a forward pass in another thread ran without the autocast of its caller",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
