#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/exchange.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

const trace::Site* exchange_of(const TraceView& view) {
  const auto& sites = view.trace().sites;
  const auto found = std::find_if(sites.begin(), sites.end(), is_collective);
  return found != sites.end() ? &*found : nullptr;
}

/// Whether a rank's own forward or backward pass made a non-finite value in a step, before any exchange. Where
/// operators were not checked, its gradients say so.
bool own(const TraceView& view, std::int64_t step) {
  if (view.outcome(step).loss_nonfinite) return true;
  for (const trace::NonfiniteEvent* event : view.nonfinite_events(step)) {
    const trace::Site* const site = view.site(event->site);
    if (site == nullptr || is_collective(*view.outermost_op(site->id))) continue;
    const bool forward = site->phase == trace::Phase::forward;
    if (event->kind == trace::OriginKind::producer && (forward || site->phase == trace::Phase::backward)) return true;
    if (event->kind == trace::OriginKind::input && forward) return true;
  }
  return view.run().level < trace::Level::automatic && !view.nonfinite_gradients(step).empty();
}

bool designed(const ProcessAnalysis& process, std::int64_t step) {
  bool any = false;
  for (const SkipAnalysis& analysis : process.skips) {
    for (const Skip& skip : analysis.skips) {
      if (skip.step != step) continue;
      any = true;
      if (!process.by_design(skip)) return false;
    }
  }
  return any;
}

void evaluate_run(const RuleContext& context, std::vector<Finding>& findings) {
  std::vector<const ProcessAnalysis*> ranks;
  for (const ProcessAnalysis& process : context.processes()) {
    if (process.view.run().rank != trace::none && exchange_of(process.view) != nullptr) ranks.push_back(&process);
  }
  if (ranks.size() < 2) return;
  std::set<std::int64_t> bad;
  for (const ProcessAnalysis* process : ranks) {
    for (const auto& [step, outcome] : process->view.outcomes()) {
      if (outcome.bad()) bad.insert(step);
    }
  }
  StepSpan steps;
  std::set<std::int64_t> sources;
  std::set<std::int64_t> victims;
  const TraceView* source = nullptr;
  for (const std::int64_t step : bad) {
    std::vector<const ProcessAnalysis*> with;
    std::vector<const ProcessAnalysis*> without;
    for (const ProcessAnalysis* process : ranks)
      (own(process->view, step) ? with : without).push_back(process);
    // What an exchange brought: the others skip the step, or apply it, without a non-finite value of their own.
    std::erase_if(without, [&](const ProcessAnalysis* process) { return !process->view.outcome(step).bad(); });
    if (with.empty() || without.empty() || with.size() + without.size() < 2) continue;
    if (std::all_of(with.begin(), with.end(), [&](const auto* process) { return designed(*process, step); })) continue;
    if (steps.count == 0) {
      steps.first = step;
      source = &with.front()->view;
      for (const ProcessAnalysis* process : with)
        sources.insert(process->view.run().rank);
      for (const ProcessAnalysis* process : without)
        victims.insert(process->view.run().rank);
    }
    steps.last = step;
    ++steps.count;
  }
  if (steps.count == 0) return;
  const trace::Site* const exchange = exchange_of(*source);
  Finding finding = context.finding();
  finding.title = fmt::format("non-finite values start on rank {} and reach the others through {}",
                              fmt::join(sources, ", "), exchange->name);
  const auto events = source->nonfinite_events(steps.first);
  std::string born;
  for (const trace::NonfiniteEvent* event : events) {
    if (event->kind != trace::OriginKind::producer && event->kind != trace::OriginKind::input) continue;
    finding.culprit = context.culprit(trace::none);
    const trace::Site* const site = source->site(event->site);
    if (site == nullptr) continue;
    finding.culprit.op = site->name;
    finding.culprit.phase = site->phase;
    finding.culprit.module = source->module_of(site->id);
    if (const trace::SourceLine line = source->source_of(site->id); line.known()) finding.culprit.source = line;
    born = source->describe(site->id);
    break;
  }
  finding.steps = steps;
  finding.message = fmt::format(
      "At step {} rank {} had non-finite values of its own{}; rank {} had none, and got them with the summed "
      "gradients. {} so.",
      steps.first, fmt::join(sources, ", "), born.empty() ? "" : " (first " + born + ")", fmt::join(victims, ", "),
      plural(steps.count, "step") + (steps.count == 1 ? " is" : " are"));
  finding.proof = fmt::format("step {}: born on rank {}, fed to rank {}", steps.first, fmt::join(sources, ", "),
                              fmt::join(victims, ", "));
  finding.evidence = {{"source_ranks", fmt::format("{}", fmt::join(sources, ", "))},
                      {"fed_ranks", fmt::format("{}", fmt::join(victims, ", "))},
                      {"exchange", exchange->name},
                      {"born_at", born}};
  finding.fix = fmt::format("look at what rank {} gets: its share of the data, its device", fmt::join(sources, ", "));
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::gradients};
// Where the value was born and why is the verdict; this says to whom it went.
constexpr std::array<std::string_view, 4> symptom_of = {"AMP4", "AMP5", "AMP6", "AMP801"};

}  // namespace

extern const Rule rule_amp802;
const Rule rule_amp802 = {
    .code = "AMP802",
    .name = "rank-nonfinite",
    .family = Family::processes,
    .severity = Severity::error,
    .summary = "non-finite values start on one rank and reach the others",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate_run = evaluate_run,
};

}  // namespace ampscope::analyzers
