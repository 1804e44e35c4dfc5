#include "analyzers/core/link.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ampscope::analyzers {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Draft draft(const std::string& rule, Severity severity, StepSpan steps, std::vector<std::size_t> processes = {0}) {
  Draft result;
  result.finding.rule = rule;
  result.finding.severity = severity;
  result.finding.steps = steps;
  result.processes = std::move(processes);
  return result;
}

TEST(Link, PutsASymptomUnderItsCause) {
  std::vector<Draft> drafts{draft("AMP302", Severity::warning, {10, 50, 9}),
                            draft("AMP401", Severity::error, {10, 50, 9})};
  link_symptoms(drafts);
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].finding.rule, "AMP401");
  EXPECT_THAT(drafts[0].finding.symptoms, ElementsAre("AMP302"));
  ASSERT_EQ(drafts[0].finding.explained.size(), 1U);
  EXPECT_EQ(drafts[0].finding.explained[0].rule, "AMP302");
}

TEST(Link, FoldsAChainUnderItsFirstCause) {
  // Overflow → collapse → gradients flushed at the small scale.
  std::vector<Draft> drafts{draft("AMP501", Severity::error, {40, 50, 9}),
                            draft("AMP302", Severity::warning, {10, 50, 9}),
                            draft("AMP401", Severity::error, {10, 50, 9})};
  link_symptoms(drafts);
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].finding.rule, "AMP401");
  EXPECT_THAT(drafts[0].finding.symptoms, ::testing::UnorderedElementsAre("AMP302", "AMP501"));
  for (const Finding& explained : drafts[0].finding.explained)
    EXPECT_THAT(explained.explained, IsEmpty());
}

TEST(Link, ACauseIsAsSevereAsWhatItExplains) {
  std::vector<Draft> drafts{draft("AMP201", Severity::warning, {0, 50, 51}),
                            draft("AMP501", Severity::error, {0, 50, 51})};
  link_symptoms(drafts);
  ASSERT_EQ(drafts.size(), 1U);
  EXPECT_EQ(drafts[0].finding.severity, Severity::error);
}

TEST(Link, NeedsTheSameStepsAndTheSameProcess) {
  std::vector<Draft> apart{draft("AMP302", Severity::warning, {100, 150, 9}),
                           draft("AMP401", Severity::error, {3, 3, 1})};
  link_symptoms(apart);
  EXPECT_EQ(apart.size(), 2U);
  std::vector<Draft> other{draft("AMP302", Severity::warning, {3, 9, 5}, {0}),
                           draft("AMP401", Severity::error, {3, 9, 5}, {1})};
  link_symptoms(other);
  EXPECT_EQ(other.size(), 2U);
}

TEST(Link, ANoteExplainsNothing) {
  std::vector<Draft> drafts{draft("AMP501", Severity::error, {0, 9, 9}), draft("AMP202", Severity::info, {0, 9, 9})};
  link_symptoms(drafts);
  EXPECT_EQ(drafts.size(), 2U);
}

TEST(Link, TakesTheEarliestOfSeveralCauses) {
  std::vector<Draft> drafts{draft("AMP302", Severity::warning, {10, 50, 9}),
                            draft("AMP614", Severity::error, {12, 50, 9}),
                            draft("AMP402", Severity::error, {10, 50, 9})};
  link_symptoms(drafts);
  ASSERT_EQ(drafts.size(), 2U);
  EXPECT_THAT(drafts[0].finding.symptoms, IsEmpty());
  EXPECT_EQ(drafts[1].finding.rule, "AMP402");
  EXPECT_THAT(drafts[1].finding.symptoms, ElementsAre("AMP302"));
}

TEST(Link, MergesTheSameFindingOfSeveralProcesses) {
  std::vector<Draft> drafts{draft("AMP202", Severity::warning, {2, 9, 8}, {0}),
                            draft("AMP202", Severity::error, {0, 7, 8}, {1}),
                            draft("AMP202", Severity::error, {0, 7, 8}, {1})};
  drafts[2].finding.culprit.op = "another";
  merge_equal(drafts);
  ASSERT_EQ(drafts.size(), 2U);
  EXPECT_THAT(drafts[0].processes, ElementsAre(0, 1));
  EXPECT_EQ(drafts[0].finding.severity, Severity::error);
  EXPECT_EQ(drafts[0].finding.steps.first, 0);
  EXPECT_EQ(drafts[0].finding.steps.last, 9);
}

}  // namespace
}  // namespace ampscope::analyzers
