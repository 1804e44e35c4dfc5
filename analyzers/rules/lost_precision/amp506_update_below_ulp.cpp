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

constexpr std::size_t fewest_samples = 3;
// Random numbers that are drawn in so many steps belong to the update; weights are initialised once.
constexpr std::int64_t drawn_steps = 3;
// Training takes this many steps: a run that was cut short shows what the whole one would lose.
constexpr std::int64_t usual_steps = 10000;

/// Learning rate of a step as far as it is known; empty without any record of it.
std::optional<double> learning_rate(const TraceView& view, std::int64_t optimizer, std::int64_t step) {
  std::optional<double> found;
  for (const trace::SeriesPoint* point : view.series("lr")) {
    if (optimizer != trace::none && point->object != optimizer) continue;
    if (point->first_step <= step) found = point->max;
  }
  return found;
}

/// Whether a step of this optimizer has the size of the learning rate whatever the gradients' size is.
bool normalises(const std::string& name) {
  return name.find("SGD") == std::string::npos && !name.empty();
}

/// Whether the values written at `writer` are rounded at random: then small steps arrive in the mean. Random numbers of
/// the forward pass (dropout) reach an update through its gradients; those of the update itself are drawn without
/// autograd or inside the optimizer.
bool rounds_at_random(const TraceView& view, std::int64_t writer) {
  if (writer == trace::none) return false;
  const std::vector<bool> reached = view.ancestors(writer);
  return std::any_of(view.trace().sites.begin(), view.trace().sites.end(), [&](const trace::Site& site) {
    return reached[static_cast<std::size_t>(site.id)] && op_kind(site.name) == OpKind::random &&
           (site.phase == trace::Phase::optimizer || !site.grad_enabled) && view.totals(site.id).steps >= drawn_steps;
  });
}

struct Group {
  bool by_hand = false;  ///< an operator of the program's, not an optimizer's range
  trace::DType dtype = trace::DType::unknown;
  std::map<std::int64_t, StepWrites> steps;
  std::map<std::int64_t, StepWrites> parameters;
};

/// The optimizer that stepped at `site`: that of one of its parameters, or the one that its steps name.
std::int64_t owner_of(const TraceView& view, std::int64_t site, const Group& group) {
  for (const auto& [id, writes] : group.parameters) {
    const trace::Parameter* const parameter = view.parameter(id);
    if (parameter != nullptr && parameter->optimizer != trace::none) return parameter->optimizer;
  }
  for (const trace::StepPattern& pattern : view.trace().patterns) {
    for (const trace::ProtocolEvent& event : pattern.events) {
      if (event.kind == trace::EventKind::optimizer_step && event.site == site) return event.object;
    }
  }
  return trace::none;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  std::map<std::int64_t, Group> groups;
  for (const trace::WriteSample& write : view.trace().writes) {
    if (write.kind != trace::WriteKind::parameter) continue;
    const trace::Parameter* const parameter = view.parameter(write.parameter);
    const double weight = parameter != nullptr && parameter->count > 0 && write.elements > 0
                              ? static_cast<double>(parameter->count) * static_cast<double>(write.calls) /
                                    static_cast<double>(write.elements)
                              : 1;
    Group& group = groups[write.site];
    group.dtype = write.dtype;
    group.by_hand = view.site(write.site) != nullptr && view.site(write.site)->kind == trace::SiteKind::op;
    group.steps[write.step].add(write, weight);
    group.parameters[write.parameter].add(write, weight);
  }
  for (const auto& [site, group] : groups) {
    const std::int64_t owner = owner_of(view, site, group);
    double highest = 0;
    for (const auto& [step, writes] : group.steps)
      highest = std::max(highest, learning_rate(view, owner, step).value_or(0));
    // While the learning rate warms up, small steps are meant; what counts is what happens at its height.
    std::vector<const StepWrites*> counted;
    for (const auto& [step, writes] : group.steps) {
      const std::optional<double> lr = learning_rate(view, owner, step);
      if (!lr || (*lr > 0 && *lr >= highest / 2)) counted.push_back(&writes);
    }
    if (counted.size() < fewest_samples) continue;
    const auto last_rate = learning_rate(view, owner, group.steps.rbegin()->first);
    const auto middle_rate = learning_rate(view, owner, group.steps.rbegin()->first / 2);
    if (last_rate && middle_rate && *last_rate > 1.5 * *middle_rate) continue;

    const trace::Optimizer* const optimizer = view.optimizer(owner);
    // Where a step is as large as its gradient, small ones are worth little: nearly all must be lost.
    const bool even = optimizer != nullptr && normalises(optimizer->name) && !group.by_hand;
    const double min_share = even ? context.parameter("min_share") : context.parameter("min_share_uneven");
    double concerned = 0;
    double changed = 0;
    double values = 0;
    double gradients = 0;
    std::size_t lost_steps = 0;
    for (const StepWrites* writes : counted) {
      concerned += writes->concerned;
      changed += writes->changed;
      values += writes->value_sum;
      gradients += writes->contribution_sum;
      if (writes->unchanged() >= min_share) ++lost_steps;
    }
    const double share_unchanged = 1 - changed / std::max(concerned, 1.0);
    const StepWrites& last = *counted.back();
    // Weights that are copies of masters stay in most steps, and nothing is lost.
    if (last.copied || rounds_at_random(view, last.writer)) continue;
    // Gradients that have died down lose nothing: they were not lost when they were large.
    const bool from_the_start = counted.front()->unchanged() >= min_share / 2;
    if (share_unchanged < min_share || !from_the_start ||
        static_cast<double>(lost_steps) < 0.8 * static_cast<double>(counted.size()))
      continue;
    if (highest > 0 && values > 0 && !group.by_hand) {
      // What fp32 would have kept must amount to something over a run.
      const double each = even ? highest * concerned / values : highest * gradients / values;
      if (each * static_cast<double>(std::max(view.steps(), usual_steps)) < smallest_change(group.dtype) / 2) continue;
    }

    Finding finding = context.finding();
    if (share_unchanged < context.parameter("error_share")) finding.severity = Severity::warning;
    const std::string type = trace::short_dtype_name(group.dtype);
    finding.culprit = context.culprit(site);
    finding.culprit.phase = trace::Phase::optimizer;
    std::int64_t worst = trace::none;
    double worst_share = -1;
    std::int64_t stuck = 0;
    for (const auto& [id, writes] : group.parameters) {
      if (writes.unchanged() >= 0.99) ++stuck;
      if (writes.unchanged() > worst_share) {
        worst_share = writes.unchanged();
        worst = id;
      }
    }
    if (const trace::Parameter* const parameter = view.parameter(worst); parameter != nullptr)
      finding.culprit.parameter = parameter->name;
    finding.steps = {counted.front()->step, counted.back()->step, view.steps()};
    finding.steps.count = std::min(finding.steps.count, finding.steps.last - finding.steps.first + 1);
    finding.title = fmt::format("{} of the {} weights with a gradient do not move", share(share_unchanged), type);
    finding.message = fmt::format(
        "In {} sampled steps {} left {} of the weights whose gradient is not zero as they were, bit by bit: "
        "its steps are smaller than half the distance to the next {} number (about {} of a weight).",
        counted.size(), group.by_hand ? "the update" : "the optimizer", share(share_unchanged), type,
        share(smallest_change(group.dtype)));
    if (highest > 0) finding.message += fmt::format(" The learning rate is {:.3g}.", highest);
    finding.proof = fmt::format("{} of updates lost in {}", share(share_unchanged), type);
    if (stuck > 0) finding.proof += fmt::format(" · {} of {} parameters never move", stuck, group.parameters.size());
    finding.evidence = {{"share_unchanged", share_unchanged},
                        {"sampled_steps", static_cast<double>(counted.size())},
                        {"parameters_stuck", static_cast<double>(stuck)},
                        {"learning_rate", highest},
                        {"share_that_ever_moved", last.concerned > 0 ? last.moved / last.concerned : 0},
                        {"dtype", trace::dtype_name(group.dtype)}};
    finding.fix =
        "keep the weights in fp32 and use autocast for the forward pass, or keep fp32 master weights in the optimizer; "
        "stochastic rounding works too";
    findings.push_back(std::move(finding));
    if (group.by_hand) return;  // The operators of one update lose together.
  }
}

constexpr std::array needs = {Stream::protocol, Stream::numerics};
constexpr std::array parameters = {
    ParameterSpec{"min_share", 0.5, 0.01, 1, false,
                  "share of the weights with a gradient that stay as they are, from which it is reported"},
    ParameterSpec{"min_share_uneven", 0.85, 0.01, 1, false,
                  "the same for optimizers whose steps are as large as the gradient (SGD) and for updates by hand"},
    ParameterSpec{"error_share", 0.8, 0.01, 1, false, "share from which it is an error"},
};

}  // namespace

extern const Rule rule_amp506;
const Rule rule_amp506 = {
    .code = "AMP506",
    .name = "update-below-ulp",
    .family = Family::lost_precision,
    .severity = Severity::error,
    .summary = "most weights with a gradient do not change, because steps are too small for their type",
    .needs = needs,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
