#include "probe/record/step_ledger.h"

#include <algorithm>
#include <utility>

namespace ampscope::record {
namespace {

/// Events that may follow the last optimizer step of a step and still belong to it.
bool trails(trace::EventKind kind) {
  using trace::EventKind;
  return kind == EventKind::schedule_step || kind == EventKind::gradient_clear || kind == EventKind::scale_read ||
         kind == EventKind::gradient_read || kind == EventKind::gradient_write || kind == EventKind::parameter_write ||
         kind == EventKind::loss_read || kind == EventKind::refusal;
}

std::uint64_t hash_of(const std::vector<trace::ProtocolEvent>& events) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL; };
  for (const trace::ProtocolEvent& event : events) {
    mix(static_cast<std::uint64_t>(event.kind));
    mix(static_cast<std::uint64_t>(event.object));
    mix(static_cast<std::uint64_t>(event.site));
    mix(event.flags);
    mix(event.optimizers);
    mix(event.added);
  }
  return hash;
}

/// Events that are seen in every step, however little is looked at in it.
bool part_of_outcome(trace::EventKind kind) {
  using trace::EventKind;
  return kind == EventKind::unscale || kind == EventKind::optimizer_step || kind == EventKind::optimizer_skip ||
         kind == EventKind::scaler_update || kind == EventKind::schedule_step || kind == EventKind::scale_read ||
         kind == EventKind::gradient_clear || kind == EventKind::refusal;
}

}  // namespace

StepLedger::StepLedger() {
  running_.reserve(max_events);
  previous_.reserve(max_events);
}

void StepLedger::add(const trace::ProtocolEvent& event) {
  if (belongs_to_previous(event)) {
    if (previous_.size() < max_events && (previous_.empty() || previous_.back() != event)) previous_.push_back(event);
    return;
  }
  if (previous_open_) close_previous();
  if (running_.size() >= max_events) return;
  // A loop over parameters makes the same event many times over; one says it.
  if (trails(event.kind) && !running_.empty() && running_.back() == event) return;
  running_.push_back(event);
}

bool StepLedger::belongs_to_previous(const trace::ProtocolEvent& event) const noexcept {
  if (!previous_open_ || !running_.empty()) return false;
  if (trails(event.kind)) return true;
  // The second of two optimizers that step after one backward pass.
  return event.kind == trace::EventKind::optimizer_step &&
         std::any_of(previous_.begin(), previous_.end(),
                     [](const auto& earlier) { return earlier.kind == trace::EventKind::backward; }) &&
         std::none_of(previous_.begin(), previous_.end(), [&](const auto& earlier) {
           return earlier.kind == event.kind && earlier.object == event.object;
         });
}

void StepLedger::amend(trace::EventKind kind, std::uint32_t flags, std::uint64_t optimizers, std::uint64_t added) {
  const auto found =
      std::find_if(running_.rbegin(), running_.rend(), [kind](const auto& event) { return event.kind == kind; });
  if (found == running_.rend()) return;
  found->flags |= flags;
  found->optimizers |= optimizers;
  found->added |= added;
}

bool StepLedger::contains(trace::EventKind kind, std::int64_t object) const noexcept {
  return std::any_of(running_.begin(), running_.end(),
                     [&](const auto& event) { return event.kind == kind && event.object == object; });
}

bool StepLedger::contains(trace::EventKind kind) const noexcept {
  return std::any_of(running_.begin(), running_.end(), [&](const auto& event) { return event.kind == kind; });
}

bool StepLedger::begun_again(std::int64_t optimizer) const noexcept {
  bool backward = false;
  for (auto event = running_.rbegin(); event != running_.rend(); ++event) {
    backward = backward || event->kind == trace::EventKind::backward;
    const bool turn =
        event->kind == trace::EventKind::optimizer_step || event->kind == trace::EventKind::optimizer_skip;
    if (turn && event->object == optimizer) return backward;
  }
  return false;
}

void StepLedger::end_step() {
  if (previous_open_) close_previous();
  note_companions();
  previous_.swap(running_);
  running_.clear();
  previous_open_ = true;
  previous_outcome_only_ = running_outcome_only_;
  ++step_;
}

void StepLedger::note_companions() {
  const auto steps = [](const trace::ProtocolEvent& event) { return event.kind == trace::EventKind::optimizer_step; };
  if (std::count_if(running_.begin(), running_.end(), steps) < 2) return;
  for (const trace::ProtocolEvent& event : running_) {
    if (steps(event) && std::find(companions_.begin(), companions_.end(), event.object) == companions_.end()) {
      companions_.push_back(event.object);
    }
  }
}

void StepLedger::close_previous() {
  closed_.push_back(close(step_ - 1, previous_, previous_outcome_only_));
  previous_.clear();
  previous_open_ = false;
}

StepLedger::Closed StepLedger::close(std::int64_t step, const std::vector<trace::ProtocolEvent>& seen,
                                     bool outcome_only) {
  Closed closed;
  closed.step = step;
  if (outcome_only) {
    complete(seen);
  } else {
    whole_ = seen;
  }
  const std::vector<trace::ProtocolEvent>& events = outcome_only ? made_whole_ : seen;
  std::vector<trace::StepPattern>& candidates = patterns_[hash_of(events)];
  for (const trace::StepPattern& pattern : candidates) {
    if (pattern.events == events) {
      closed.pattern = pattern.id;
      return closed;
    }
  }
  closed.pattern = next_pattern_++;
  candidates.push_back({closed.pattern, events});
  closed.new_pattern = candidates.back();
  return closed;
}

void StepLedger::complete(const std::vector<trace::ProtocolEvent>& outcome) {
  using trace::EventKind;
  std::vector<trace::ProtocolEvent>& events = made_whole_;
  events.clear();
  used_.assign(outcome.size(), false);
  const auto take = [&](EventKind kind, const trace::ProtocolEvent* like) {
    for (std::size_t i = 0; i < outcome.size(); ++i) {
      // Whose gradients zero_grad cleared is told by its operators, which were not seen.
      const bool same = !like || kind == EventKind::gradient_clear || outcome[i].object == like->object;
      if (used_[i] || outcome[i].kind != kind || !same) continue;
      used_[i] = true;
      events.push_back(kind == EventKind::gradient_clear && like ? *like : outcome[i]);
      return;
    }
  };
  for (const trace::ProtocolEvent& event : whole_) {
    if (!part_of_outcome(event.kind)) {
      events.push_back(event);
      continue;
    }
    // A skip stands right before the update that tells it.
    if (event.kind == EventKind::scaler_update) {
      for (std::size_t i = 0; i < outcome.size(); ++i)
        take(EventKind::optimizer_skip, nullptr);
    }
    // What was skipped then may have been taken now.
    take(event.kind == EventKind::optimizer_skip ? EventKind::optimizer_step : event.kind, &event);
  }
  for (std::size_t i = 0; i < outcome.size(); ++i) {
    if (!used_[i]) events.push_back(outcome[i]);
  }
}

std::vector<StepLedger::Closed> StepLedger::take_closed() {
  return std::exchange(closed_, {});
}

std::vector<StepLedger::Closed> StepLedger::finish() {
  if (previous_open_) close_previous();
  const bool stepped =
      std::any_of(running_.begin(), running_.end(),
                  [this](const auto& event) {
                    return event.kind == trace::EventKind::optimizer_step &&
                           std::find(companions_.begin(), companions_.end(), event.object) == companions_.end();
                  }) ||
      contains(trace::EventKind::optimizer_skip) || contains(trace::EventKind::scaler_update) ||
      contains(trace::EventKind::parameter_write) || contains(trace::EventKind::refusal);
  if (stepped) {
    closed_.push_back(close(step_, running_, running_outcome_only_));
    ++step_;
  }
  running_.clear();
  return std::exchange(closed_, {});
}

}  // namespace ampscope::record
