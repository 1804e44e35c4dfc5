#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

struct Advance {
  StepSpan on_skip;  ///< skipped steps on which it advanced
  std::int64_t site = trace::none;
  std::int64_t steps = 0;  ///< how often the schedule advanced
};

struct Counts {
  std::map<std::int64_t, Advance> schedules;
  std::map<std::int64_t, std::int64_t> real;  ///< steps taken, by optimizer
  std::map<std::int64_t, std::int64_t> skipped;
  std::int64_t all_real = 0;
  std::int64_t all_skipped = 0;
};

Counts count(const TraceView& view) {
  Counts counts;
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == EventKind::optimizer_step) {
      counts.real[event.object] += span.count;
      counts.all_real += span.count;
    } else if (event.kind == EventKind::optimizer_skip) {
      counts.skipped[event.object] += span.count;
      counts.all_skipped += span.count;
    } else if (event.kind == EventKind::schedule_step && (event.flags & event_flag::first_use) == 0) {
      Advance& advance = counts.schedules[event.object];
      advance.steps += span.count;
      if (advance.site == trace::none) advance.site = event.site;
      const bool known = event.object >= 0 && event.object < static_cast<std::int64_t>(before.schedules.size());
      if (!known) return;
      const ScheduleState& since = before.schedules[static_cast<std::size_t>(event.object)];
      if (since.skipped && !since.stepped) extend(advance.on_skip, span);
    }
  });
  return counts;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  Counts counts = count(view);
  for (const auto& [id, advance] : counts.schedules) {
    if (advance.on_skip.count == 0) continue;
    const trace::Schedule* const schedule = view.schedule(id);
    const bool owned = schedule != nullptr && schedule->optimizer != trace::none;
    const std::int64_t real = owned ? counts.real[schedule->optimizer] : counts.all_real;
    const std::int64_t skipped = owned ? counts.skipped[schedule->optimizer] : counts.all_skipped;
    // A schedule that advances once an epoch meets a skipped step now and then; that costs it nothing.
    if (2 * advance.steps < real + skipped) continue;
    const std::string name = schedule != nullptr && !schedule->name.empty() ? schedule->name : "the schedule";
    const double extra = static_cast<double>(advance.on_skip.count) / static_cast<double>(advance.steps);
    Finding finding = context.finding();
    if (extra < context.parameter("warn_share")) finding.severity = Severity::info;
    finding.title = "the learning-rate schedule advances on skipped steps";
    finding.steps = advance.on_skip;
    finding.culprit = context.culprit(advance.site);
    finding.culprit.op = name + ".step";
    finding.culprit.phase = trace::Phase::optimizer;
    if (schedule != nullptr && schedule->source.known()) finding.culprit.source = schedule->source;
    finding.message =
        fmt::format("{} advanced {} but only {} changed the weights: it moved on in {} that the scaler skipped.", name,
                    plural(advance.steps, "time"), plural(real, "step"), plural(advance.on_skip.count, "step"));
    finding.proof = fmt::format("{} for {}", plural(advance.steps, "schedule step"), plural(real, "real step"));
    finding.evidence = {{"schedule", name},
                        {"schedule_steps", static_cast<double>(advance.steps)},
                        {"real_steps", static_cast<double>(real)},
                        {"advanced_on_skip", static_cast<double>(advance.on_skip.count)}};
    finding.fix =
        "scale = scaler.get_scale(); scaler.update(); if scaler.get_scale() >= scale: scheduler.step()   "
        "(the scale falls exactly when the step was skipped)";
    finding.fix_cpp = "advance the schedule only when GradScaler::step returned that the optimizer stepped";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};
constexpr std::array parameters = {
    ParameterSpec{"warn_share", 0.01, 0, 1, false,
                  "share of the schedule's steps made on skipped steps from which it is a warning; below, a note"}};

}  // namespace

extern const Rule rule_amp212;
const Rule rule_amp212 = {
    .code = "AMP212",
    .name = "scheduler-advanced-on-skip",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "the learning-rate schedule advanced on steps that the scaler skipped",
    .needs = needs,
    .parameters = parameters,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
