#include "probe/record/budget.h"

#include <array>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "analyzers/core/sampled.h"
#include "probe/record/windows.h"

namespace ampscope::record {
namespace {

/// A program whose steps take `base` seconds and longer by a share that depends on the mode, with noise and pauses.
struct Program {
  std::array<double, step_modes> extra;
  double base = 0.01;
  std::mt19937_64 random{1};
  double noise = 0.03;

  double step(StepMode mode) {
    std::normal_distribution<double> around_one(1, noise);
    std::uniform_real_distribution<double> uniform(0, 1);
    const double pause = uniform(random) < 0.01 ? 5 * base : 0;  // A checkpoint now and then.
    return base * (1 + extra[static_cast<std::size_t>(mode)]) * std::max(0.5, around_one(random)) + pause;
  }
  /// Half of what it costs passes inside the hooks.
  [[nodiscard]] double own(StepMode mode) const { return base * extra[static_cast<std::size_t>(mode)] / 2; }
};

/// Share of time that was added, by the simulated clock.
double overhead(BudgetPlanner& planner, Program& program, int steps, StepMode at_least = StepMode::ranges) {
  double added = 0;
  for (int i = 0; i < steps; ++i) {
    const StepMode mode = planner.next(at_least).mode;
    added += program.extra[static_cast<std::size_t>(mode)];
    planner.finished(program.step(mode), program.own(mode));
  }
  return added / steps;
}

TEST(BudgetPlanner, StaysUnderTheBudgetWhateverTheModesCost) {
  for (const double percent : {1.0, 2.0, 5.0}) {
    for (const auto& extra :
         {std::array{0.0, 0.01, 0.08, 0.3}, std::array{0.0, 0.1, 0.4, 1.2}, std::array{0.0, 0.3, 1.0, 4.0}}) {
      double total = 0;
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        BudgetPlanner planner(percent, trace::Level::automatic, seed);
        Program program{extra, 0.01, std::mt19937_64(seed)};
        total += overhead(planner, program, 4000);
      }
      EXPECT_LE(total / 20, percent / 100) << percent << "% with full costing " << extra[3];
    }
  }
}

TEST(BudgetPlanner, HoldsOnAMachineWhereStepsVaryByAFifth) {
  double total = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    BudgetPlanner planner(2, trace::Level::automatic, seed);
    Program program{{0.0, 0.05, 0.2, 0.6}, 0.01, std::mt19937_64(seed), 0.2};
    total += overhead(planner, program, 4000);
  }
  EXPECT_LE(total / 20, 0.02);
}

TEST(BudgetPlanner, CountsWhatItCostsEvenWhereItLooksLeast) {
  // Notes and ranges alone take 1 % of a step; they can be compared with nothing and are timed.
  BudgetPlanner planner(2);
  std::mt19937_64 random(1);
  double added = 0;
  constexpr int steps = 5000;
  const std::array<double, step_modes> extra = {0.01, 0.06, 0.21, 0.61};
  for (int i = 0; i < steps; ++i) {
    const double share = extra[static_cast<std::size_t>(planner.next().mode)];
    added += share;
    std::normal_distribution<double> around_one(1, 0.03);
    planner.finished(0.01 * (1 + share) * around_one(random), 0.01 * share);
  }
  EXPECT_LE(added / steps, 0.02);
  EXPECT_NEAR(planner.cost().share, added / steps, 0.003);
}

TEST(BudgetPlanner, APauseInTheFirstStepOfAModeIsNotItsCost) {
  BudgetPlanner planner(2);
  Program program{{0, 0.02, 0.1, 0.3}};
  overhead(planner, program, 50, StepMode::ranges);
  static_cast<void>(planner.next(StepMode::full));
  planner.finished(program.base * 300, program.own(StepMode::full));
  EXPECT_LT(planner.extra(StepMode::full), 1.2);
  EXPECT_LT(planner.cost().share, 0.1);
}

TEST(BudgetPlanner, PaysBackWhatTheFirstStepsCost) {
  BudgetPlanner planner(2);
  Program program{{0, 0.02, 0.1, 0.3}};
  double added = 0;
  for (int i = 0; i < 3; ++i) {  // Sites are made and Python's frames are walked: ten steps' time for each.
    static_cast<void>(planner.first());
    planner.finished(0.11, 0.1);
    added += 10;
  }
  constexpr int steps = 6000;
  added += steps * overhead(planner, program, steps);
  EXPECT_LE(added / steps, 0.02);
}

TEST(BudgetPlanner, FollowsALoadThatChangesMidway) {
  BudgetPlanner planner(2);
  Program program{{0, 0.02, 0.1, 0.3}};
  overhead(planner, program, 2000);
  program.base = 0.04;  // Slower, which is no fault of ours.
  EXPECT_LE(overhead(planner, program, 2000), 0.02);
  EXPECT_NEAR(planner.extra(StepMode::operators), 0.1, 0.05);
  program.extra = {0, 0.1, 0.5, 1.5};  // More operators in a step.
  EXPECT_LE(overhead(planner, program, 2000), 0.025);
  EXPECT_LE(overhead(planner, program, 3000), 0.02);
  EXPECT_NEAR(planner.extra(StepMode::operators), 0.5, 0.15);
}

TEST(BudgetPlanner, UsesMostOfWhatItMaySpend) {
  for (const trace::Level level :
       {trace::Level::ops, trace::Level::grads, trace::Level::automatic, trace::Level::full}) {
    BudgetPlanner planner(2, level);
    Program program{{0, 0.02, 0.1, 0.3}};
    overhead(planner, program, 1000);
    // In level auto steps in full become rare, and what they leave is not given to the others.
    const double least = level == trace::Level::automatic ? 0.004 : 0.008;
    EXPECT_GE(overhead(planner, program, 20000), least) << static_cast<int>(level);
  }
}

TEST(BudgetPlanner, ComparesWithWatchedStepsWhereNoOthersArePossible) {
  BudgetPlanner planner(2);
  Program program{{0, 0, 0, 0.5}};
  EXPECT_LE(overhead(planner, program, 3000, StepMode::operators), 0.02);
  EXPECT_GT(planner.full_steps(), 5);
  EXPECT_EQ(planner.operator_steps(), 3000);
}

TEST(BudgetPlanner, AForcedStepIsSeenInFullAndLeavesTheDrawOfGradientsAlone) {
  BudgetPlanner planner(2);
  Program program{{0, 0.02, 0.1, 0.3}};
  overhead(planner, program, 1000);
  int gradients = 0;
  for (int i = 0; i < 200; ++i) {
    const BudgetPlanner::Plan plan = planner.next(StepMode::full);
    EXPECT_EQ(plan.mode, StepMode::full);
    EXPECT_EQ(plan.numerics_weight, 1);
    gradients += plan.gradients ? 1 : 0;
    planner.finished(program.step(plan.mode), program.own(plan.mode));
  }
  EXPECT_GT(gradients, 0);
  EXPECT_LT(gradients, 150);
}

/// A gradient of 1000 elements of which some are zero, more or fewer from step to step.
std::uint64_t zeros_in(int step, std::mt19937_64& random) {
  std::lognormal_distribution<double> some(3 + std::sin(step / 200.0), 0.7);
  return static_cast<std::uint64_t>(std::min(900.0, some(random)));
}

TEST(BudgetPlanner, EstimatesAreUnbiasedAndTheirIntervalsCoverTheTruth) {
  constexpr int runs = 200;
  constexpr int steps = 3000;
  double sum = 0;
  double squares = 0;
  int covered = 0;
  for (int run = 0; run < runs; ++run) {
    const auto seed = static_cast<std::uint64_t>(run) * 7919 + 1;
    BudgetPlanner planner(5, trace::Level::automatic, seed);
    Program program{{0, 0.02, 0.1, 0.3}, 0.01, std::mt19937_64(seed)};
    std::mt19937_64 values(seed + 1);
    GradientWindows windows;
    double truth = 0;
    double total = 0;
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t zeros = zeros_in(step, values);
      truth += static_cast<double>(zeros);
      const BudgetPlanner::Plan plan = step < 3 ? planner.first() : planner.next();
      if (plan.gradients) {
        total += plan.gradient_weight * static_cast<double>(zeros);
        trace::TensorStats stats;
        stats.count = 1000;
        stats.zero = zeros;
        windows.add({.step = step, .parameter = 0, .weight = plan.gradient_weight}, stats);
      }
      planner.finished(program.step(plan.mode), program.own(plan.mode));
    }
    sum += total / truth;
    squares += total / truth * total / truth;
    std::vector<const trace::GradientWindow*> seen;
    const std::vector<trace::GradientWindow> taken = windows.take(steps, true);
    for (const trace::GradientWindow& window : taken)
      seen.push_back(&window);
    const auto interval = analyzers::zero_share_interval(seen);
    ASSERT_TRUE(interval.has_value());
    const double share = truth / (1000.0 * steps);
    covered += interval->first <= share && share <= interval->second ? 1 : 0;
  }
  const double mean = sum / runs;
  const double deviation = std::sqrt((squares / runs - mean * mean) / runs);
  EXPECT_NEAR(mean, 1, 3 * deviation);
  EXPECT_LT(deviation, 0.02);
  EXPECT_GE(covered, runs * 94 / 100);
}

}  // namespace
}  // namespace ampscope::record
