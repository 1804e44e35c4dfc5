#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/exchange.h"
#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

using trace::EventKind;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Whether what a collective takes comes from the backward pass: gradients, or what the program made of them before
/// any optimizer used them.
bool takes_gradients(const TraceView& view, const trace::Site& collective) {
  const auto single = [](const trace::TensorType& input) { return input.shape.empty(); };
  // Numbers are losses and flags.
  if (std::all_of(collective.inputs.begin(), collective.inputs.end(), single)) return false;
  std::set<std::int64_t> seen{collective.id};
  std::vector<std::int64_t> open{collective.id};
  while (!open.empty()) {
    const std::int64_t current = open.back();
    open.pop_back();
    for (const std::int64_t producer : view.producers(current)) {
      const trace::Site& made_by = *view.site(producer);
      if (made_by.phase == trace::Phase::backward) return true;
      const bool of_parameters = std::any_of(made_by.inputs.begin(), made_by.inputs.end(),
                                             [](const auto& input) { return input.parameter != trace::none; });
      if (made_by.phase == trace::Phase::optimizer || of_parameters || !seen.insert(producer).second) continue;
      open.push_back(producer);
    }
  }
  return false;
}

/// Ranks that work on one model exchange gradients. Processes that only share a launcher, or that average their weights
/// now and then, may differ as they like.
bool exchanges_gradients(const TraceView& view) {
  const auto& sites = view.trace().sites;
  if (std::any_of(sites.begin(), sites.end(), is_gradient_exchange)) return true;
  for (const trace::StepPattern& pattern : view.trace().patterns) {
    for (const trace::ProtocolEvent& event : pattern.events) {
      const bool of_gradients = event.kind == EventKind::gradient_read || event.kind == EventKind::gradient_write;
      const trace::Site* const site = of_gradients ? view.site(event.site) : nullptr;
      if (site != nullptr && is_collective(*site)) return true;
    }
  }
  return std::any_of(sites.begin(), sites.end(), [&](const trace::Site& site) {
    if (!is_collective(site)) return false;
    const bool of_parameters = std::any_of(site.inputs.begin(), site.inputs.end(),
                                           [](const auto& input) { return input.parameter != trace::none; });
    if (of_parameters || contains(site.name, "gather") || contains(site.name, "broadcast")) return false;
    if (view.has_producers()) return takes_gradients(view, site);
    // Gradients are exchanged in every step.
    return view.totals(site.id).calls >= static_cast<std::int64_t>(view.updates(0).size());
  });
}

/// What the scaler of a rank did in a step.
struct State {
  std::int64_t step = 0;
  float before = 0;
  bool skipped = false;
};

/// By the order of updates: where a step ends is each rank's own affair, and need not be the same on all of them.
std::vector<State> timeline(const TraceView& view) {
  std::vector<State> states;
  for (const trace::ScalerUpdate* update : view.updates(0)) {
    if (states.empty() || states.back().step != update->step)
      states.push_back({update->step, update->scale_before, view.skipped(update->step)});
  }
  return states;
}

void evaluate_run(const RuleContext& context, std::vector<Finding>& findings) {
  struct Rank {
    const TraceView* view;
    std::vector<State> states;
  };
  std::vector<Rank> ranks;
  for (const ProcessAnalysis& process : context.processes()) {
    const TraceView& view = process.view;
    if (view.run().rank == trace::none || view.updates(0).empty() || !exchanges_gradients(view)) continue;
    ranks.push_back({&view, timeline(view)});
  }
  if (ranks.size() < 2) return;
  StepSpan steps;
  bool scales = false;
  bool skips = false;
  std::vector<std::string> words;
  double smallest = 0;
  double largest = 0;
  std::size_t common = ranks.front().states.size();
  for (const Rank& rank : ranks)
    common = std::min(common, rank.states.size());
  for (std::size_t i = 0; i < common; ++i) {
    const State& state = ranks.front().states[i];
    const std::int64_t step = state.step;
    bool scale_differs = false;
    bool skip_differs = false;
    for (const Rank& rank : ranks) {
      scale_differs = scale_differs || rank.states[i].before != state.before;
      skip_differs = skip_differs || rank.states[i].skipped != state.skipped;
    }
    if (!scale_differs && !skip_differs) continue;
    scales = scales || scale_differs;
    skips = skips || skip_differs;
    if (steps.count == 0) {
      steps.first = step;
      for (const Rank& rank : ranks) {
        const State& other = rank.states[i];
        smallest = smallest == 0 ? other.before : std::min<double>(smallest, other.before);
        largest = std::max<double>(largest, other.before);
        words.push_back(fmt::format("rank {}: {}{}", rank.view->run().rank, scale(other.before),
                                    skip_differs ? (other.skipped ? ", skipped" : ", stepped") : ""));
      }
    }
    steps.last = step;
    ++steps.count;
  }
  if (steps.count == 0) return;
  Finding finding = context.finding();
  finding.title = scales && (!skips || smallest != largest) ? "the ranks train with different loss scales"
                                                            : "the ranks skip different steps";
  finding.culprit.op = "GradScaler.update";
  finding.culprit.phase = trace::Phase::scaler;
  const TraceView& first = *ranks.front().view;
  if (!first.trace().scalers.empty() && first.trace().scalers.front().source.known()) {
    finding.culprit.source = first.trace().scalers.front().source;
  }
  finding.steps = steps;
  finding.message = fmt::format(
      "At step {}: {}. {}", steps.first, fmt::join(words, "; "),
      scales && smallest != largest
          ? "Gradients that are summed over the ranks while scaled mix these factors, and each rank divides by its own."
          : "One rank changed its weights while another kept them; the replicas drift apart.");
  finding.proof = fmt::format("step {}: {}", steps.first, fmt::join(words, " · "));
  finding.evidence = {{"ranks_compared", static_cast<double>(ranks.size())},
                      {"first_step", static_cast<double>(steps.first)},
                      {"smallest_scale", smallest},
                      {"largest_scale", largest},
                      {"scales_differ", scales ? 1.0 : 0.0},
                      {"skips_differ", skips ? 1.0 : 0.0}};
  finding.fix = skips && smallest == largest
                    ? "one found_inf for all ranks: all-reduce gradients before unscale_ (DDP does), or found_inf "
                      "between unscale_ and step (sharded gradients, stages of a pipeline)"
                    : "the same init_scale, settings and restored state on every rank (scaler.load_state_dict on each, "
                      "not on rank 0 alone), and one found_inf for all";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp801;
const Rule rule_amp801 = {
    .code = "AMP801",
    .name = "rank-scale-divergence",
    .family = Family::processes,
    .severity = Severity::error,
    .summary = "ranks hold different loss scales or skip different steps",
    .needs = needs,
    .evaluate_run = evaluate_run,
};

}  // namespace ampscope::analyzers
