#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

/// Ranks that work on one model: they exchange tensors. Processes that only share a launcher may differ as they like.
bool exchanges(const TraceView& view) {
  return std::any_of(view.trace().sites.begin(), view.trace().sites.end(), [](const trace::Site& site) {
    return site.name.starts_with("c10d::") || site.name.find("all_reduce") != std::string::npos ||
           site.name.find("allreduce") != std::string::npos || site.name.starts_with("DistributedDataParallel");
  });
}

/// What the scaler of a rank did in a step.
struct State {
  float before = 0;
  float after = 0;
  bool skipped = false;
  friend bool operator==(const State&, const State&) = default;
};

std::map<std::int64_t, State> timeline(const TraceView& view) {
  std::map<std::int64_t, State> states;
  for (const trace::ScalerUpdate* update : view.updates(0)) {
    const auto [at, fresh] = states.try_emplace(update->step);
    if (fresh) at->second.before = update->scale_before;
    at->second.after = update->scale_after;
    at->second.skipped = view.skipped(update->step);
  }
  return states;
}

void evaluate_run(const RuleContext& context, std::vector<Finding>& findings) {
  struct Rank {
    const TraceView* view;
    std::map<std::int64_t, State> states;
  };
  std::vector<Rank> ranks;
  for (const ProcessAnalysis& process : context.processes()) {
    const TraceView& view = process.view;
    if (view.run().rank == trace::none || view.updates(0).empty() || !exchanges(view)) continue;
    ranks.push_back({&view, timeline(view)});
  }
  if (ranks.size() < 2) return;
  StepSpan steps;
  bool scales = false;
  bool skips = false;
  std::vector<std::string> words;
  double smallest = 0;
  double largest = 0;
  std::set<std::string> evidence_ranks;
  for (const auto& [step, state] : ranks.front().states) {
    bool scale_differs = false;
    bool skip_differs = false;
    bool everywhere = true;
    for (const Rank& rank : ranks) {
      const auto found = rank.states.find(step);
      everywhere = everywhere && found != rank.states.end();
      if (found == rank.states.end()) continue;
      scale_differs = scale_differs || found->second.before != state.before;
      skip_differs = skip_differs || found->second.skipped != state.skipped;
    }
    if (!everywhere || (!scale_differs && !skip_differs)) continue;
    scales = scales || scale_differs;
    skips = skips || skip_differs;
    if (steps.count == 0) {
      steps.first = step;
      for (const Rank& rank : ranks) {
        const State& other = rank.states.at(step);
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
  finding.fix =
      "the same init_scale and settings on every rank, and one found_inf for all: all-reduce gradients before unscale_ "
      "(DDP "
      "does), or a sharded scaler for sharded gradients";
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
