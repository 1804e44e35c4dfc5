#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

std::string advice(const std::set<std::string>& kinds) {
  if (kinds.contains("torch.compile"))
    return "to see inside: TORCHDYNAMO_DISABLE=1 ampscope run -- …, or torch.compile(…, backend=\"eager\")";
  if (kinds.contains("cuda-graph")) return "to see inside: run without graph capture for a while";
  return "to see inside: run the module eagerly for a while";
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const std::vector<trace::HiddenRegion>& regions = context.trace().hidden_regions;
  if (regions.empty()) return;
  std::set<std::string> kinds;
  std::int64_t calls = 0;
  std::int64_t time = 0;
  std::int64_t first = regions.front().first_step;
  for (const trace::HiddenRegion& region : regions) {
    kinds.insert(region.kind);
    calls += region.calls;
    time += region.time_ns;
    first = std::min(first, region.first_step);
  }
  const std::int64_t elapsed = context.trace().status.elapsed_ns;
  const double part = elapsed > 0 ? std::min(1.0, static_cast<double>(time) / static_cast<double>(elapsed)) : 0;
  std::string names;
  for (const std::string& kind : kinds)
    names += (names.empty() ? "" : ", ") + kind;

  Finding finding = context.finding();
  const std::int64_t last = std::max<std::int64_t>(context.view().steps() - 1, 0);
  finding.steps = {std::max<std::int64_t>(first, 0), std::max(last, first),
                   std::max<std::int64_t>(last - first + 1, 1)};
  finding.culprit.op = regions.size() == 1 && !regions.front().name.empty() ? regions.front().name : names;
  finding.title = part > 0 ? fmt::format("{} of the run's time passed in regions whose operators are not seen ({})",
                                         share(part), names)
                           : fmt::format("some regions hide their operators ({})", names);
  finding.message =
      fmt::format("{} ran {}; their inputs, outputs and gradients were watched, what happens inside was not.",
                  plural(static_cast<std::int64_t>(regions.size()), "region"), plural(calls, "time"));
  finding.proof = fmt::format("{} · {}{}", plural(static_cast<std::int64_t>(regions.size()), "region"),
                              plural(calls, "call"), part > 0 ? fmt::format(" · {} of the time", share(part)) : "");
  finding.evidence = {{"regions", static_cast<double>(regions.size())},
                      {"calls", static_cast<double>(calls)},
                      {"time_share", part},
                      {"kinds", names}};
  finding.precision_fault = false;
  finding.fix = advice(kinds);
  findings.push_back(std::move(finding));
}

}  // namespace

extern const Rule rule_amp901;
const Rule rule_amp901 = {
    .code = "AMP901",
    .name = "region-not-observed",
    .family = Family::run,
    .severity = Severity::info,
    .summary = "compiled or replayed regions hide their operators",
    .precision_fault = false,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
