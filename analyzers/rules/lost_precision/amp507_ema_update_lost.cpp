#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rules/lost_precision/kept_writes.h"

namespace ampscope::analyzers {

namespace {

using SiteWrites = std::map<std::int64_t, std::map<std::int64_t, StepWrites>>;

constexpr std::size_t fewest_samples = 3;
constexpr double nearly_all = 0.8;
constexpr double largest_weight = 0.1;  ///< beyond, the new value shows in every type

struct Average {
  double weight = 0;    ///< of the new value
  double distance = 0;  ///< of what it follows, relative to its own size
};

SiteWrites writes_of(const TraceView& view, trace::WriteKind kind) {
  return writes_by_site(view, [kind](const trace::WriteSample& write) {
    return write.kind == kind && write.parameter == trace::none && !write.gradient;
  });
}

/// lerp: the sample has both.
std::optional<Average> by_lerp(const StepWrites& all) {
  if (all.distance_sum <= 0 || all.value_sum <= 0) return std::nullopt;
  return Average{all.contribution_sum / all.distance_sum, all.distance_sum / all.value_sum};
}

/// mul by c, then an addition of (1 - c) times what is followed: the addition's sample has the distance.
std::optional<Average> by_product(const TraceView& view, const SiteWrites& additions, std::int64_t product,
                                  const StepWrites& all) {
  if (all.value_sum <= 0) return std::nullopt;
  const double weight = all.contribution_sum / all.value_sum;
  for (const auto& [id, steps] : additions) {
    const StepWrites added = sum_of(steps);
    if (added.distance_sum <= 0 || added.unchanged() < nearly_all) continue;
    const std::vector<std::int64_t> before = view.producers(id);
    if (added.writer != product && std::find(before.begin(), before.end(), product) == before.end()) continue;
    return Average{weight, added.distance_sum / added.value_sum};
  }
  return std::nullopt;
}

/// An addition of c times the difference to what is followed, or a copy of the sum of (1 - c) times the old value and c
/// times the new one, computed in a wider type: c stands in the operators in between.
std::optional<Average> by_difference(const TraceView& view, std::int64_t addition, const StepWrites& all) {
  if (all.distance_sum > 0 || all.value_sum <= 0) return std::nullopt;
  std::optional<double> weight;
  const bool copied = base_name(view.site(addition)->name) == "copy";
  std::vector<std::int64_t> front = copied ? view.producers(addition) : std::vector<std::int64_t>{addition};
  for (int hops = 0; hops < 3; ++hops) {
    std::vector<std::int64_t> next;
    for (const std::int64_t id : front) {
      const trace::Site* const site = view.site(id);
      const std::string_view base = base_name(site->name);
      if (base == "sub" || base == "rsub") {
        if (weight) return Average{*weight, all.contribution_sum / *weight / all.value_sum};
        continue;
      }
      if (base != "mul" && base != "add" && base != "lerp") continue;
      for (const double scalar : site->scalars) {
        if (std::abs(scalar) > 0 && std::abs(scalar) <= largest_weight) weight = std::abs(scalar);
      }
      for (const std::int64_t producer : view.producers(id))
        next.push_back(producer);
    }
    // A difference beside a factor: both were seen before either was asked for.
    front = std::move(next);
  }
  if (copied && weight) return Average{*weight, all.contribution_sum / *weight / all.value_sum};
  return std::nullopt;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const SiteWrites additions = writes_of(view, trace::WriteKind::add);
  for (const trace::WriteKind kind : {trace::WriteKind::lerp, trace::WriteKind::multiply, trace::WriteKind::add}) {
    const SiteWrites sites = kind == trace::WriteKind::add ? additions : writes_of(view, kind);
    for (const auto& [id, steps] : sites) {
      const trace::Site* const site = view.site(id);
      if (site == nullptr || steps.size() < fewest_samples) continue;
      const StepWrites all = sum_of(steps);
      if (all.concerned == 0 || all.unchanged() < nearly_all || !comes_round(view, id, all.writer)) continue;
      const std::optional<Average> average = kind == trace::WriteKind::lerp       ? by_lerp(all)
                                             : kind == trace::WriteKind::multiply ? by_product(view, additions, id, all)
                                                                                  : by_difference(view, id, all);
      if (!average || average->weight <= 0 || average->weight > largest_weight) continue;
      const trace::DType dtype = site->outputs.empty() ? site->compute_dtype : site->outputs.front().dtype;
      const double ulp = smallest_change(dtype);
      // Close to what it follows: there is nothing to move.
      if (average->distance < 4 * ulp) continue;

      Finding finding = context.finding();
      const std::string type = trace::short_dtype_name(dtype);
      finding.culprit = context.culprit(id);
      finding.steps = {steps.begin()->first, steps.rbegin()->first, std::max<std::int64_t>(view.totals(id).steps, 1)};
      finding.steps.count = std::min(finding.steps.count, finding.steps.last - finding.steps.first + 1);
      finding.title = fmt::format("the moving average in {} does not move", type);
      finding.message = fmt::format(
          "{} gives the new value a weight of {:.3g}, but a number in {} changes by {} at least: in {} sampled steps "
          "{} "
          "of {} elements stayed as they were, bit by bit, although what they follow is {} away.",
          view.describe(id), average->weight, type, share(ulp), steps.size(), share(all.unchanged()),
          count_of(static_cast<std::int64_t>(all.concerned)), share(average->distance));
      finding.proof =
          fmt::format("{} of {} elements unchanged · weight {:.3g}, {} shows {:.3g}", share(all.unchanged()),
                      count_of(static_cast<std::int64_t>(all.concerned)), average->weight, type, ulp);
      finding.evidence = {{"share_unchanged", all.unchanged()},
                          {"weight", average->weight},
                          {"relative_distance", average->distance},
                          {"smallest_change", ulp},
                          {"sampled_steps", static_cast<double>(steps.size())},
                          {"dtype", trace::dtype_name(dtype)}};
      finding.fix = "keep the average in fp32: ema = weight.detach().float().clone()";
      finding.fix_cpp = "keep the average in fp32: auto ema = weight.detach().to(torch::kFloat).clone();";
      findings.push_back(std::move(finding));
      return;  // Both halves of one update, and each tensor of a list, are one fault.
    }
  }
}

constexpr std::array needs = {Stream::protocol, Stream::numerics};

}  // namespace

extern const Rule rule_amp507;
const Rule rule_amp507 = {
    .code = "AMP507",
    .name = "ema-update-lost",
    .family = Family::lost_precision,
    .severity = Severity::error,
    .summary = "a moving average never moves, because what is added each time is below the precision of its type",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
