#include "probe/record/step_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ampscope::record {
namespace {

using trace::EventKind;

trace::ProtocolEvent event(EventKind kind, std::int64_t object = 0) {
  return {.kind = kind, .object = object};
}

/// One step as a training loop makes it; what trails comes after its end.
void train_step(StepLedger& ledger, bool skipped = false) {
  ledger.add(event(EventKind::backward));
  ledger.add(event(EventKind::unscale));
  ledger.add(event(skipped ? EventKind::optimizer_skip : EventKind::optimizer_step));
  ledger.add(event(EventKind::scaler_update));
  ledger.end_step();
  ledger.add(event(EventKind::schedule_step));
  ledger.add(event(EventKind::gradient_clear));
}

std::vector<EventKind> kinds(const trace::StepPattern& pattern) {
  std::vector<EventKind> result;
  for (const trace::ProtocolEvent& e : pattern.events)
    result.push_back(e.kind);
  return result;
}

TEST(StepLedger, WhatComesAfterTheLastUpdateStillBelongsToTheStep) {
  StepLedger ledger;
  train_step(ledger);
  EXPECT_EQ(ledger.step(), 1);
  EXPECT_TRUE(ledger.take_closed().empty()) << "open until the next step begins";
  ledger.add(event(EventKind::backward));
  const auto closed = ledger.take_closed();
  ASSERT_EQ(closed.size(), 1U);
  EXPECT_EQ(closed[0].step, 0);
  ASSERT_TRUE(closed[0].new_pattern);
  EXPECT_THAT(kinds(*closed[0].new_pattern),
              testing::ElementsAre(EventKind::backward, EventKind::unscale, EventKind::optimizer_step,
                                   EventKind::scaler_update, EventKind::schedule_step, EventKind::gradient_clear));
}

TEST(StepLedger, EqualStepsShareAPatternThatIsGivenOnce) {
  StepLedger ledger;
  for (int i = 0; i < 5; ++i)
    train_step(ledger);
  train_step(ledger, true);
  const auto closed = ledger.finish();
  ASSERT_EQ(closed.size(), 6U);
  int new_patterns = 0;
  for (const auto& step : closed)
    new_patterns += step.new_pattern ? 1 : 0;
  EXPECT_EQ(new_patterns, 2);
  EXPECT_EQ(closed[0].pattern, closed[4].pattern);
  EXPECT_NE(closed[0].pattern, closed[5].pattern);
}

TEST(StepLedger, AStepWithoutAnOptimizerStepIsNoneAtTheEnd) {
  StepLedger ledger;
  train_step(ledger);
  ledger.add(event(EventKind::backward));
  EXPECT_EQ(ledger.finish().size(), 1U);
}

TEST(StepLedger, AmendsTheLatestEventOfAKind) {
  StepLedger ledger;
  ledger.add(event(EventKind::backward));
  ledger.add(event(EventKind::backward));
  ledger.amend(EventKind::backward, trace::event_flag::scaled, 5);
  EXPECT_EQ(ledger.events()[0].flags, 0U);
  EXPECT_EQ(ledger.events()[1].flags, trace::event_flag::scaled);
  EXPECT_EQ(ledger.events()[1].optimizers, 5U);
}

TEST(StepLedger, ALoopOverParametersIsOneEvent) {
  StepLedger ledger;
  ledger.add(event(EventKind::backward));
  for (int i = 0; i < 100; ++i)
    ledger.add(event(EventKind::gradient_write));
  EXPECT_EQ(ledger.events().size(), 2U);
  ledger.add(event(EventKind::backward));
  ledger.add(event(EventKind::backward));
  EXPECT_EQ(ledger.events().size(), 4U) << "micro-batches are counted one by one";
}

TEST(StepLedger, ASecondOptimizerAfterTheSameBackwardPassIsNoStepOfItsOwn) {
  StepLedger ledger;
  ledger.add(event(EventKind::backward));
  ledger.add(event(EventKind::optimizer_step, 0));
  ledger.end_step();
  EXPECT_TRUE(ledger.follows_ended_step(1));
  EXPECT_FALSE(ledger.follows_ended_step(0)) << "an optimizer steps once in a step";
  ledger.add(event(EventKind::optimizer_step, 1));
  EXPECT_EQ(ledger.finish().size(), 1U);
}

/// Discriminator, generator: steps end with the first, so at the end of the run the second is left over.
TEST(StepLedger, WhatIsLeftOfAStepOfTwoOptimizersIsNoneAtTheEnd) {
  StepLedger ledger;
  for (int i = 0; i < 3; ++i) {
    ledger.add(event(EventKind::backward));
    ledger.add(event(EventKind::optimizer_step, 0));
    ledger.end_step();
    ledger.add(event(EventKind::backward));
    ledger.add(event(EventKind::optimizer_step, 1));
  }
  EXPECT_EQ(ledger.finish().size(), 3U);
}

TEST(StepLedger, AStepOfWhichOnlyTheOutcomeWasSeenIsCompletedFromTheLatestWholeOne) {
  StepLedger ledger;
  const auto whole = [&](bool skipped) {
    ledger.add(event(EventKind::backward));
    ledger.add({.kind = EventKind::unscale, .object = 0, .flags = skipped ? trace::event_flag::found_inf : 0U});
    ledger.add(event(EventKind::gradient_write));
    ledger.add(event(skipped ? EventKind::optimizer_skip : EventKind::optimizer_step, 0));
    ledger.add(event(EventKind::scaler_update));
    ledger.end_step();
  };
  const auto outcome = [&](bool skipped) {
    ledger.add({.kind = EventKind::unscale, .object = 0, .flags = skipped ? trace::event_flag::found_inf : 0U});
    ledger.add(event(skipped ? EventKind::optimizer_skip : EventKind::optimizer_step, 0));
    ledger.add(event(EventKind::scaler_update));
    ledger.end_step();
  };
  whole(false);
  ledger.see_outcome_only(true);
  outcome(false);
  outcome(true);  // No whole step has been skipped so far.
  ledger.see_outcome_only(false);
  whole(true);
  ledger.see_outcome_only(true);
  outcome(true);
  outcome(false);
  const auto closed = ledger.finish();
  ASSERT_EQ(closed.size(), 6U);
  EXPECT_EQ(closed[1].pattern, closed[0].pattern);
  EXPECT_EQ(closed[2].pattern, closed[3].pattern);
  EXPECT_EQ(closed[4].pattern, closed[3].pattern);
  EXPECT_EQ(closed[5].pattern, closed[0].pattern);
}

}  // namespace
}  // namespace ampscope::record
