// Which steps are looked at how closely, so that what it costs stays under a share of the run's time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/model.h"

namespace ampscope::record {

/// How closely a step is looked at, from the cheapest. Whether gradients are finite is seen in all of them.
enum class StepMode : std::uint8_t {
  ranges,     ///< no callback for operators and nodes; optimizers and the scaler are seen
  gradients,  ///< the same, and statistics of the gradients
  operators,  ///< every operator, with the cheap non-finite check of its outputs, and statistics of the gradients
  full,       ///< every operator, with statistics of its outputs and of the gradients
};
inline constexpr std::size_t step_modes = 4;

/// Draws the mode of each step. What a mode costs is estimated from the steps themselves: the steps of a mode are
/// compared with the least observed ones around them, so a program that becomes slower or faster midway changes
/// nothing, and medians keep a checkpoint or a garbage collection out. The least observed steps are compared with
/// nothing; what they cost is the time measured inside our own hooks.
///
/// The probabilities of a step depend only on earlier steps, and modes are drawn independently of what the step does;
/// so every quantity seen in a mode, times the inverse of the probability, estimates the sum over all steps without
/// bias (Horvitz and Thompson 1952). Probabilities change rarely, so that windows of steps have one weight.
class BudgetPlanner {
 public:
  /// `percent`: what recording may add to the time of a step on average, more than 0. `level` says which modes differ.
  explicit BudgetPlanner(double percent, trace::Level level = trace::Level::automatic,
                         std::uint64_t seed = 0x5eed) noexcept;

  struct Plan {
    StepMode mode = StepMode::full;
    bool gradients = true;       ///< statistics of gradients are taken
    double numerics_weight = 1;  ///< in mode full: steps that this one stands for
    double gradient_weight = 1;  ///< the same for statistics of gradients
  };
  /// For the step that begins now. `at_least`: operators where steps cannot be recognised without them; full in steps
  /// that are looked at whatever it costs. Then its outputs stand for that step alone, and whether gradients are taken
  /// is drawn all the same.
  [[nodiscard]] Plan next(StepMode at_least = StepMode::ranges) noexcept;
  /// A first step: everything is taken and stands for itself.
  [[nodiscard]] Plan first() noexcept;
  /// Tells how long the step took that the latest plan was for, and what of it passed inside our own hooks; 0 where it
  /// cannot be timed.
  void finished(double seconds, double own_seconds) noexcept;

  /// Share that steps of `mode` take longer than the least observed ones; 0 for those, and a guess on the high side
  /// until some have been seen.
  [[nodiscard]] double extra(StepMode mode) const noexcept;

  /// Share of time that recording has added so far, with an interval of 95 %.
  struct Cost {
    double share = 0;
    double low = 0;
    double high = 0;
  };
  [[nodiscard]] Cost cost() const noexcept;
  /// Steps so far of which operators were seen, gradients' statistics taken, outputs' statistics taken.
  [[nodiscard]] std::int64_t operator_steps() const noexcept { return operator_steps_; }
  [[nodiscard]] std::int64_t gradient_steps() const noexcept { return gradient_steps_; }
  [[nodiscard]] std::int64_t full_steps() const noexcept { return steps_of_[3]; }

 private:
  static constexpr std::size_t kept_ratios = 15;
  static constexpr std::size_t kept_base = 9;

  struct Seen {
    std::array<double, kept_ratios> ratios{};  ///< of the latest steps' time to that of the least observed ones, less 1
    std::size_t count = 0;
    double own_share = 0;  ///< of a step's time inside our hooks, a running mean
    std::size_t own_count = 0;
  };
  void plan_probabilities(StepMode at_least) noexcept;
  [[nodiscard]] double uniform() noexcept;
  [[nodiscard]] double base_seconds() const noexcept;

  double budget_;
  bool looks_at_gradients_;
  bool looks_at_outputs_;
  bool rarer_with_time_;  ///< steps in full: each writes rows of its own
  std::uint64_t state_;
  Plan plan_;
  StepMode least_ = StepMode::ranges;  ///< the least observed mode in use
  std::array<double, step_modes> probabilities_{};
  std::int64_t planned_at_ = -1;  ///< step at which the probabilities were raised last
  std::array<Seen, step_modes> seen_{};
  std::array<double, kept_base> base_{};  ///< seconds of the latest steps that were observed least
  std::size_t base_count_ = 0;
  std::int64_t steps_ = 0;
  std::array<std::int64_t, step_modes> steps_of_{};
  std::int64_t operator_steps_ = 0;
  std::int64_t gradient_steps_ = 0;
  double unsettled_seconds_ = 0;  ///< our own time in steps before the first base
  double extra_steps_ = 0;        ///< spent so far, in steps without recording
};

}  // namespace ampscope::record
