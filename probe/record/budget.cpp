#include "probe/record/budget.h"

#include <algorithm>
#include <cmath>

namespace ampscope::record {
namespace {

// Estimates are noisy and some cost is paid outside the steps that cause it (caches, the writer's thread).
constexpr double safety = 0.75;
// What the modes get of the budget; the dearest tells most. By what the level looks at: operators, gradients, outputs.
constexpr std::array<double, step_modes> shares_operators = {0, 0, 1, 0};
constexpr std::array<double, step_modes> shares_gradients = {0, 0.4, 0.6, 0};
constexpr std::array<double, step_modes> shares_outputs = {0, 0.2, 0.3, 0.5};
// Before anything was measured: what the modes cost where an operator does next to nothing.
constexpr std::array<double, step_modes> first_guess = {0, 0.1, 0.4, 1.0};
// What torch takes to announce operators to us is about what we take ourselves; that a mode costs more than so many
// times our own time, and so much, is a disturbance.
constexpr double largest_to_own = 3;
constexpr double largest_beyond_own = 0.05;
// A mode that seems free is still not used in every step: the steps in between are what it is compared with.
constexpr double most = 0.25;
constexpr double least_extra = 0.002;
// However much the least observed steps cost by themselves, some are looked at more closely.
constexpr double least_part = 0.1;
// Overdrawn by the first steps, which are looked at in full, the budget is paid back over so many steps, and is never
// saved for that below so much of it.
constexpr double pay_back_over = 1000;
constexpr double least_while_paying = 0.25;
// A probability is lowered when it is too high by a little, and raised when it is too low by much and has stood long.
constexpr double too_high = 1.2;
constexpr double too_low = 0.6;
constexpr std::int64_t stands_at_least = 64;
// Steps in full write rows of their own, so they become rarer: about so many each time the run becomes 2.7 times as
// long.
constexpr double full_per_e_fold = 8;
constexpr std::size_t latest = 5;
constexpr std::size_t enough = 3;

template <std::size_t N>
double median(const std::array<double, N>& values, std::size_t count) noexcept {
  std::array<double, N> sorted = values;
  count = std::min(count, N);
  if (count == 0) return 0;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

/// Median of the latest values of a ring.
template <std::size_t N>
double median_of_latest(const std::array<double, N>& ring, std::size_t count, std::size_t wanted) noexcept {
  std::array<double, N> values{};
  wanted = std::min({wanted, count, N});
  for (std::size_t i = 0; i < wanted; ++i)
    values[i] = ring[(count - 1 - i) % N];
  return median(values, wanted);
}

/// Standard error of a ring's median: from the median deviation, as if the values were normal.
template <std::size_t N>
double error_of_median(const std::array<double, N>& ring, std::size_t count) noexcept {
  count = std::min(count, N);
  if (count < enough) return 0;
  const double middle = median(ring, count);
  std::array<double, N> deviations{};
  for (std::size_t i = 0; i < count; ++i)
    deviations[i] = std::abs(ring[i] - middle);
  return 1.4826 * 1.2533 * median(deviations, count) / std::sqrt(static_cast<double>(count));
}

}  // namespace

BudgetPlanner::BudgetPlanner(double percent, trace::Level level, std::uint64_t seed) noexcept
    : budget_(percent / 100),
      looks_at_gradients_(level >= trace::Level::grads),
      looks_at_outputs_(level >= trace::Level::automatic),
      rarer_with_time_(level < trace::Level::full),
      state_(seed) {}

double BudgetPlanner::uniform() noexcept {
  // SplitMix64 (Steele, Lea, Flood 2014): a generator of our own, for the program's must not be touched.
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

double BudgetPlanner::base_seconds() const noexcept {
  return base_count_ >= enough ? median(base_, base_count_) : 0;
}

double BudgetPlanner::extra(StepMode mode) const noexcept {
  const auto index = static_cast<std::size_t>(mode);
  if (mode <= least_) return 0;
  const Seen& seen = seen_[index];
  const double own = std::max(0.0, seen.own_share - seen_[static_cast<std::size_t>(least_)].own_share);
  // The latest few are asked as well, so that a mode which has become dearer is found out soon.
  const double compared = std::max(median(seen.ratios, seen.count), median_of_latest(seen.ratios, seen.count, latest));
  double measured = std::max({0.0, own, compared});
  // One of the first steps of a mode may have met a pause, and its ratio would be believed for long.
  if (seen.own_count > 0) measured = std::min(measured, largest_to_own * own + largest_beyond_own);
  // A few steps may all have been lucky ones: until there are more, what they say is not believed fully.
  const double believed = std::min(1.0, static_cast<double>(seen.count) / static_cast<double>(latest));
  return believed * measured + (1 - believed) * std::max(measured, first_guess[index]);
}

BudgetPlanner::Cost BudgetPlanner::cost() const noexcept {
  if (steps_ == 0) return {};
  const double n = static_cast<double>(steps_);
  Cost cost{extra_steps_ / n, 0, 0};
  double error = 0;
  for (std::size_t mode = 0; mode < step_modes; ++mode) {
    // The same few ratios stand for all steps of a mode, so their error does not average out.
    error += static_cast<double>(steps_of_[mode]) / n * error_of_median(seen_[mode].ratios, seen_[mode].count);
  }
  cost.low = std::max(0.0, cost.share - 1.96 * error);
  cost.high = cost.share + 1.96 * error;
  return cost;
}

void BudgetPlanner::plan_probabilities(StepMode at_least) noexcept {
  const StepMode least = at_least == StepMode::operators ? StepMode::operators : StepMode::ranges;
  if (least != least_) {
    // Other steps are the ones to compare with from now on.
    least_ = least;
    base_count_ = 0;
    planned_at_ = -1;
    for (Seen& seen : seen_)
      seen.count = 0;
  }
  const double own = seen_[static_cast<std::size_t>(least_)].own_share;
  const double available = std::max(budget_ * safety - own, budget_ * least_part);
  // What was overspent is saved again; what was not spent is not made up for, or a quiet hour would end in a storm.
  const double owed = std::max(0.0, extra_steps_ - budget_ * safety * static_cast<double>(steps_));
  const double allowed = std::max(available * least_while_paying, available - owed / pay_back_over);
  const auto& shares = looks_at_outputs_ ? shares_outputs : looks_at_gradients_ ? shares_gradients : shares_operators;
  const bool may_raise =
      planned_at_ < 0 || steps_ - planned_at_ >= std::max<std::int64_t>(stands_at_least, steps_ / 16);
  bool raised = false;
  for (std::size_t mode = 1; mode < step_modes; ++mode) {
    const auto as_mode = static_cast<StepMode>(mode);
    double wanted =
        shares[mode] == 0 ? 0 : std::clamp(allowed * shares[mode] / std::max(extra(as_mode), least_extra), 0.0, most);
    if (as_mode == StepMode::full && rarer_with_time_) {
      wanted = std::min(wanted, full_per_e_fold / static_cast<double>(std::max<std::int64_t>(steps_, 1)));
    }
    double& probability = probabilities_[mode];
    if (probability > wanted * too_high || (probability < wanted * too_low && may_raise)) {
      raised |= probability < wanted;
      probability = wanted;
    }
  }
  if (raised) planned_at_ = steps_;
}

BudgetPlanner::Plan BudgetPlanner::next(StepMode at_least) noexcept {
  if (at_least != StepMode::full) plan_probabilities(at_least);
  const double full = probabilities_[3];
  const double operators = probabilities_[2];
  const double gradients = probabilities_[1];
  const double drawn = uniform();
  plan_ = {};
  plan_.mode = drawn < full                           ? StepMode::full
               : drawn < full + operators             ? StepMode::operators
               : drawn < full + operators + gradients ? StepMode::gradients
                                                      : StepMode::ranges;
  const double some = full + operators + gradients;
  plan_.gradients = looks_at_gradients_ && plan_.mode != StepMode::ranges;
  plan_.gradient_weight = some > 0 ? 1 / some : 1;
  plan_.numerics_weight = plan_.mode == StepMode::full ? 1 / full : 1;
  if (plan_.mode < at_least) {
    plan_.mode = at_least == StepMode::full && !looks_at_outputs_ ? StepMode::operators : at_least;
  }
  if (at_least == StepMode::full) plan_.numerics_weight = 1;
  return plan_;
}

BudgetPlanner::Plan BudgetPlanner::first() noexcept {
  plan_ = {.mode = looks_at_outputs_ ? StepMode::full : StepMode::operators, .gradients = looks_at_gradients_};
  return plan_;
}

void BudgetPlanner::finished(double seconds, double own_seconds) noexcept {
  const auto index = static_cast<std::size_t>(plan_.mode);
  ++steps_;
  ++steps_of_[index];
  if (plan_.mode >= StepMode::operators) ++operator_steps_;
  if (plan_.gradients) ++gradient_steps_;
  const double base = base_seconds();
  const bool timed = seconds > 0 && std::isfinite(seconds) && own_seconds >= 0 && own_seconds < seconds;
  Seen& seen = seen_[index];
  // The first few steps make what later ones find made (sites, queues): they say nothing of those.
  if (timed && (base > 0 || plan_.mode == least_) && steps_ > static_cast<std::int64_t>(enough)) {
    const double share = own_seconds / (seconds - own_seconds);
    const double part = 1.0 / static_cast<double>(std::min<std::size_t>(++seen.own_count, kept_ratios));
    seen.own_share += part * (share - seen.own_share);
  }
  if (timed && plan_.mode == least_) {
    base_[base_count_++ % kept_base] = seconds;
  } else if (timed && base > 0) {
    seen.ratios[seen.count++ % kept_ratios] = seconds / base - 1;
  }
  if (base > 0) {
    extra_steps_ += unsettled_seconds_ / base;
    unsettled_seconds_ = 0;
    extra_steps_ += seen_[static_cast<std::size_t>(least_)].own_share + extra(plan_.mode);
  } else if (timed) {
    unsettled_seconds_ += own_seconds;
  }
}

}  // namespace ampscope::record
