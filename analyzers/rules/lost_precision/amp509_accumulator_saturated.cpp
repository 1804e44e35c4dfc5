#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rules/lost_precision/kept_writes.h"

namespace ampscope::analyzers {

namespace {

/// Part of the summands that must enlarge the sum: what adds up, and not what swings around a mean.
constexpr double outward = 0.5;

/// The second half of a moving average: what it adds to has just been multiplied.
bool follows_decay(const TraceView& view, std::int64_t site) {
  const std::vector<std::int64_t> before = view.producers(site);
  return std::any_of(before.begin(), before.end(), [&](std::int64_t producer) {
    const std::string_view base = base_name(view.site(producer)->name);
    const std::vector<double>& scalars = view.site(producer)->scalars;
    return base == "mul" && std::any_of(scalars.begin(), scalars.end(), [](double c) { return c > 0 && c < 1; });
  });
}

struct Standstill {
  std::int64_t calls = 0;  ///< in a row that changed nothing
  std::int64_t since = trace::none;
  double value = 0;
  double summand = 0;
};

/// The longest stretch of calls that changed nothing after ones that did: sums are set to zero now and then.
std::optional<Standstill> longest_standstill(const std::map<std::int64_t, StepWrites>& steps) {
  Standstill longest;
  Standstill current;
  bool grew = false;
  for (const auto& [step, writes] : steps) {
    const bool idle = writes.idle_calls == writes.calls;
    if (!idle) {
      grew = true;
      current = {writes.idle_calls, writes.idle_calls > 0 ? step : trace::none, 0, 0};
    } else {
      current.calls += writes.calls;
      if (current.since == trace::none) current.since = step;
    }
    if (writes.idle_calls > 0) {
      current.value = writes.latest_value;
      current.summand = writes.latest_contribution;
    }
    if (grew && current.calls > longest.calls) longest = current;
  }
  return longest.calls > 0 ? std::optional(longest) : std::nullopt;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const auto sites = writes_by_site(view, [](const trace::WriteSample& write) {
    return write.kind == trace::WriteKind::add && !write.gradient && write.parameter == trace::none &&
           write.distance_sum == 0;
  });
  for (const auto& [id, steps] : sites) {
    const trace::Site* const site = view.site(id);
    if (site == nullptr || follows_decay(view, id)) continue;
    const std::optional<Standstill> still = longest_standstill(steps);
    if (!still || static_cast<double>(still->calls) < context.parameter("min_calls")) continue;
    const StepWrites all = sum_of(steps);
    if (!comes_round(view, id, all.writer) || all.outward_sum < outward * all.contribution_sum) continue;
    const trace::DType dtype = site->outputs.empty() ? site->compute_dtype : site->outputs.front().dtype;
    const double ulp = smallest_change(dtype);
    if (still->summand < still->value * ulp * ulp) continue;  // An eps, not a summand.

    Finding finding = context.finding();
    const std::string type = trace::short_dtype_name(dtype);
    finding.culprit = context.culprit(id);
    const std::int64_t last = std::max(view.totals(id).last_step, still->since);
    finding.steps = {still->since, last, std::max<std::int64_t>(last - still->since + 1, 1)};
    finding.title = fmt::format("a running sum in {} has stopped growing", type);
    finding.message = fmt::format(
        "{} adds about {} to a sum of about {}, whose neighbours in {} are further away than that: from step {} on, {} "
        "in a row left the sum as it was.",
        view.describe(id), number(still->summand), number(still->value), type, count_of(still->since),
        plural(still->calls, "call"));
    finding.proof = fmt::format("{} + {} = {} in {}, {}", number(still->value), number(still->summand),
                                number(still->value), type, plural(still->calls, "time"));
    finding.evidence = {{"sum", still->value},
                        {"summand", still->summand},
                        {"calls_without_change", static_cast<double>(still->calls)},
                        {"unchanged_since", static_cast<double>(still->since)},
                        {"dtype", trace::dtype_name(dtype)}};
    finding.fix = "sum in fp32 or fp64: total = torch.zeros((), dtype=torch.float64), or in Python: total += x.item()";
    finding.fix_cpp = "sum in fp32 or fp64: auto total = torch::zeros({}, torch::kDouble), or double total += x.item()";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol, Stream::numerics};
constexpr std::array parameters = {
    ParameterSpec{"min_calls", 4, 2, 100000, true,
                  "observed additions in a row that change nothing, from which it is reported"},
};

}  // namespace

extern const Rule rule_amp509;
const Rule rule_amp509 = {
    .code = "AMP509",
    .name = "accumulator-saturated",
    .family = Family::lost_precision,
    .severity = Severity::warning,
    .summary = "a running sum in a half type has stopped growing",
    .needs = needs,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
