// The order of protocol events step by step, with the few sequences that repeat stored once.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "trace/model.h"

namespace ampscope::record {

/// Collects the events of the running step and of the one before it. Events that close a step's work (a schedule's
/// step, zero_grad, reading the scale) come after its last optimizer step, so the finished step stays open for them
/// until the next one begins its own protocol with a backward pass.
///
/// Not thread-safe: the caller holds its own lock.
class StepLedger {
 public:
  /// A step whose events are complete.
  struct Closed {
    std::int64_t step = 0;
    std::int64_t pattern = trace::none;
    std::optional<trace::StepPattern> new_pattern;  ///< when this sequence was seen for the first time
  };

  StepLedger();

  /// Number of the running step.
  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  void add(const trace::ProtocolEvent& event);
  /// Adds flags and optimizers to the latest event of a kind in the running step; nothing when there is none.
  void amend(trace::EventKind kind, std::uint32_t flags, std::uint64_t optimizers, std::uint64_t added = 0);
  [[nodiscard]] bool contains(trace::EventKind kind, std::int64_t object) const noexcept;
  [[nodiscard]] bool contains(trace::EventKind kind) const noexcept;
  /// Whether there was a backward pass since this optimizer stepped or was skipped in the running step.
  [[nodiscard]] bool begun_again(std::int64_t optimizer) const noexcept;
  [[nodiscard]] const std::vector<trace::ProtocolEvent>& events() const noexcept { return running_; }

  /// Ends the running step: its number rises. Nothing is closed yet, see above.
  void end_step();
  /// Whether of the running step only the outcome is seen: optimizers, scalers, schedules, zero_grad. The rest of it is
  /// taken to be what it was in the latest step that was seen whole.
  void see_outcome_only(bool outcome_only) noexcept { running_outcome_only_ = outcome_only; }
  /// The steps that have become complete since the last call.
  [[nodiscard]] std::vector<Closed> take_closed();
  /// The same one by one, without an allocation.
  template <typename Use>
  void use_closed(Use&& use) {
    for (Closed& step : closed_)
      use(step);
    closed_.clear();
  }
  /// Whether an optimizer's step, made now, follows another one's after the same backward pass: it then belongs to the
  /// step that has just ended.
  [[nodiscard]] bool follows_ended_step(std::int64_t optimizer) const noexcept {
    return belongs_to_previous({.kind = trace::EventKind::optimizer_step, .object = optimizer});
  }
  /// Closes what is open, at the end of a run. The running step counts only when an optimizer has stepped in it that is
  /// not one of several in each step, for those have been counted with the others, or
  /// when the scaler has refused to go on.
  [[nodiscard]] std::vector<Closed> finish();

 private:
  Closed close(std::int64_t step, const std::vector<trace::ProtocolEvent>& events, bool outcome_only);
  /// Puts the outcome of a step into made_whole_, completed from whole_.
  void complete(const std::vector<trace::ProtocolEvent>& outcome);
  void close_previous();
  void note_companions();
  [[nodiscard]] bool belongs_to_previous(const trace::ProtocolEvent& event) const noexcept;

  // A program that calls something thousands of times a step has made its point by then.
  static constexpr std::size_t max_events = 512;

  std::int64_t step_ = 0;
  std::vector<trace::ProtocolEvent> running_;
  std::vector<trace::ProtocolEvent> previous_;
  bool previous_open_ = false;
  bool running_outcome_only_ = false;
  bool previous_outcome_only_ = false;
  std::vector<trace::ProtocolEvent> whole_;  ///< events of the latest step that was seen whole
  std::vector<trace::ProtocolEvent> made_whole_;
  std::vector<bool> used_;
  std::vector<Closed> closed_;
  std::vector<std::int64_t> companions_;  ///< optimizers that stepped in one step together with others
  std::unordered_map<std::uint64_t, std::vector<trace::StepPattern>> patterns_;  ///< by hash
  std::int64_t next_pattern_ = 0;
};

}  // namespace ampscope::record
