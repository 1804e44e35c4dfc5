#include "analyzers/scaler/ledger.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analyzers/scaler/scale_model.h"

namespace ampscope::analyzers {

namespace {

constexpr std::size_t parameters_per_skip = 5;
constexpr std::size_t skips_in_detail = 2000;

std::vector<SkippedGradient> gradients_of(const TraceView& view, std::int64_t step) {
  // Each micro-batch has its own row; the worst one stands for the step.
  std::map<std::int64_t, SkippedGradient> worst;
  for (const trace::NonfiniteGradient* gradient : view.nonfinite_gradients(step)) {
    const trace::Parameter* const parameter = view.parameter(gradient->parameter);
    if (parameter == nullptr) continue;
    const auto elements = static_cast<double>(std::max<std::int64_t>(parameter->count, 1));
    SkippedGradient row{parameter->name, gradient->nan, gradient->infinite,
                        static_cast<double>(gradient->nan + gradient->infinite) / elements};
    SkippedGradient& known = worst[gradient->parameter];
    if (known.share < row.share) known = std::move(row);
  }
  std::vector<SkippedGradient> all;
  all.reserve(worst.size());
  for (auto& [parameter, row] : worst)
    all.push_back(std::move(row));
  std::stable_sort(all.begin(), all.end(),
                   [](const SkippedGradient& a, const SkippedGradient& b) { return a.share > b.share; });
  return all;
}

/// What each optimizer did in a step, in the order in which it is told.
std::vector<OptimizerOutcome> optimizers_of(const TraceView& view, std::int64_t step) {
  std::vector<OptimizerOutcome> outcomes;
  const auto add = [&](std::int64_t id, bool stepped) {
    const trace::Optimizer* const optimizer = view.optimizer(id);
    outcomes.push_back({optimizer != nullptr ? optimizer->name : "optimizer", id, stepped});
  };
  for (const trace::ProtocolEvent& event : view.events(step)) {
    const bool stepped = event.kind == trace::EventKind::optimizer_step;
    if (!stepped && event.kind != trace::EventKind::optimizer_skip) continue;
    const bool skips_inside = stepped && (event.flags & trace::event_flag::fused) != 0 && view.skipped(step);
    add(event.object, stepped && !skips_inside);
  }
  // One whose own gradients were finite, while another process found others, has no event.
  for (const trace::ProtocolEvent& event : view.events(step)) {
    const bool told = std::any_of(outcomes.begin(), outcomes.end(),
                                  [&](const OptimizerOutcome& outcome) { return outcome.id == event.object; });
    if (event.kind == trace::EventKind::unscale && !told && view.skipped(step)) add(event.object, false);
  }
  return outcomes;
}

struct Birth {
  std::int64_t site = trace::none;
  bool backward = false;
};

/// The first call of a step with a non-finite result, in backward where there is one.
Birth birth_in(const TraceView& view, std::int64_t step, bool forced) {
  Birth first;
  for (const trace::NonfiniteEvent* event : view.nonfinite_events(step)) {
    const trace::Site* const site = view.site(event->site);
    if (site == nullptr) continue;
    const bool backward = site->phase == trace::Phase::backward && !site->in_recompute;
    if (first.site == trace::none) first = {site->id, backward};
    if (!forced && backward) return {site->id, true};
  }
  return first;
}

class Ledger {
 public:
  Ledger(const ProcessAnalysis& process, std::int64_t scaler)
      : process_(&process),
        view_(&process.view),
        skips_(&process.skips[static_cast<std::size_t>(scaler)]),
        updates_(view_->updates(scaler)) {}

  std::vector<ScalerTimelineEntry> make() {
    for (std::size_t i = 0; i < updates_.size(); ++i) {
      const trace::ScalerUpdate& update = *updates_[i];
      if (update.found_inf != 0) {
        entries_.push_back(skip(i));
      } else if (!continues(update)) {
        ScalerTimelineEntry entry;
        entry.first_step = update.step;
        entry.scale = static_cast<double>(update.scale_before);
        entry.tracker_before = update.tracker_before;
        entry.assigned = update.assigned;
        entries_.push_back(std::move(entry));
      }
      ScalerTimelineEntry& entry = entries_.back();
      entry.last_step = update.step;
      entry.scale_after = static_cast<double>(update.scale_after);
      entry.tracker_after = update.tracker_after;
    }
    return std::move(entries_);
  }

 private:
  [[nodiscard]] bool continues(const trace::ScalerUpdate& update) const {
    if (entries_.empty() || update.assigned) return false;
    const ScalerTimelineEntry& last = entries_.back();
    return !last.skipped && !last.assigned && last.scale == static_cast<double>(update.scale_before);
  }

  ScalerTimelineEntry skip(std::size_t index) {
    const trace::ScalerUpdate& update = *updates_[index];
    ScalerTimelineEntry entry;
    entry.first_step = update.step;
    entry.scale = static_cast<double>(update.scale_before);
    entry.tracker_before = update.tracker_before;
    entry.skipped = true;
    const Skip* const known = skips_->at_step(update.step);
    entry.by_design = known != nullptr && process_->by_design(*known);
    if (detailed_++ >= skips_in_detail) return entry;
    const bool forced = no_scale_helps(*view_, update.step);
    entry.gradients = gradients_of(*view_, update.step);
    for (const SkippedGradient& gradient : entry.gradients) {
      if (entry.parameters.size() < parameters_per_skip) entry.parameters.push_back(gradient.parameter);
    }
    entry.optimizers = optimizers_of(*view_, update.step);
    entry.smaller_scale_helps = smaller_scale_helps(index, forced);
    add_birth(entry, update.step, forced);
    return entry;
  }

  /// A smaller scale was tried in the following steps, or the value that overflowed is known.
  [[nodiscard]] std::optional<bool> smaller_scale_helps(std::size_t index, bool forced) const {
    if (forced) return false;
    const trace::ScalerUpdate& update = *updates_[index];
    for (const trace::NonfiniteEvent* event : view_->nonfinite_events(update.step)) {
      if (event->kind == trace::OriginKind::producer && event->replay.done && event->replay.finite) return true;
    }
    for (std::size_t later = index + 1; later < updates_.size(); ++later) {
      if (updates_[later]->scale_before >= update.scale_before) break;
      if (updates_[later]->found_inf == 0) return true;
    }
    return std::nullopt;
  }

  /// Of a site that overflowed before only the first call is kept in the trace, so a later skip with the same
  /// parameters is taken to begin where that one did.
  void add_birth(ScalerTimelineEntry& entry, std::int64_t step, bool forced) {
    std::set<std::string> names;
    for (const SkippedGradient& gradient : entry.gradients)
      names.insert(gradient.parameter);
    Birth birth = birth_in(*view_, step, forced);
    if (birth.site != trace::none) {
      births_[names] = birth;
    } else if (const auto before = births_.find(names); before != births_.end() && !names.empty()) {
      birth = before->second;
      entry.born_as_before = true;
    }
    const trace::Site* const site = view_->site(birth.site);
    if (site == nullptr) return;
    entry.born_op = site->name;
    entry.born_phase = phase_name(site->phase);
    entry.born_module = view_->module_of(site->id).value_or("");
    entry.born_source = view_->place(view_->source_of(site->id));
  }

  const ProcessAnalysis* process_;
  const TraceView* view_;
  const SkipAnalysis* skips_;
  std::span<const trace::ScalerUpdate* const> updates_;
  std::vector<ScalerTimelineEntry> entries_;
  std::map<std::set<std::string>, Birth> births_;
  std::size_t detailed_ = 0;
};

}  // namespace

std::vector<ScalerTimelineEntry> make_ledger(const ProcessAnalysis& process, std::int64_t scaler) {
  return Ledger(process, scaler).make();
}

}  // namespace ampscope::analyzers
