#include <bit>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "analyzers/scaler/grad_scaler_model.h"
#include "analyzers/scaler/replay.h"

namespace ampscope::analyzers {
namespace {

/// Updates that torch itself made, see data/make_scaler_updates.py and data/make_scaler_run.py.
std::vector<trace::ScalerUpdate> torch_updates(const std::string& name = "scaler_updates.csv") {
  std::ifstream file(std::string(AMPSCOPE_ANALYZER_DATA "/") + name);
  std::vector<trace::ScalerUpdate> updates;
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream stream(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(stream, cell, ',');)
      cells.push_back(cell);
    const auto number = [&](std::size_t i) { return std::strtod(cells.at(i).c_str(), nullptr); };
    trace::ScalerUpdate update;
    update.step = static_cast<std::int64_t>(updates.size());
    update.scaler = static_cast<std::int64_t>(number(0));
    update.scale_before = static_cast<float>(number(1));
    update.tracker_before = static_cast<std::int32_t>(number(2));
    update.found_inf = static_cast<float>(number(3));
    update.growth_factor = number(4);
    update.backoff_factor = number(5);
    update.growth_interval = static_cast<std::int32_t>(number(6));
    update.scale_after = static_cast<float>(number(7));
    update.tracker_after = static_cast<std::int32_t>(number(8));
    updates.push_back(update);
  }
  return updates;
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (a != a && b != b);
}

TEST(ScalerModel, EqualsTorchBitForBit) {
  const std::vector<trace::ScalerUpdate> updates = torch_updates();
  ASSERT_EQ(updates.size(), 720U);
  for (const trace::ScalerUpdate& update : updates) {
    const ScalerState after =
        updated({update.scale_before, update.tracker_before}, update.found_inf, factors_of(update));
    EXPECT_TRUE(same_bits(after.scale, update.scale_after)) << "sequence " << update.scaler << " step " << update.step
                                                            << ": " << after.scale << " is not " << update.scale_after;
    EXPECT_EQ(after.tracker, update.tracker_after);
  }
}

TEST(ScalerModel, ReplaysWholeSequencesFromTheirFirstState) {
  const std::vector<trace::ScalerUpdate> updates = torch_updates();
  ScalerState state;
  std::int64_t sequence = trace::none;
  for (const trace::ScalerUpdate& update : updates) {
    if (update.scaler != sequence) {
      sequence = update.scaler;
      state = {update.scale_before, update.tracker_before};
    }
    state = updated(state, update.found_inf, factors_of(update));
    EXPECT_TRUE(same_bits(state.scale, update.scale_after)) << "sequence " << sequence;
    EXPECT_EQ(state.tracker, update.tracker_after);
  }
}

TEST(ScalerModel, ReplaysAThousandStepsWhoseSettingsChange) {
  const std::vector<trace::ScalerUpdate> updates = torch_updates("scaler_run.csv");
  ASSERT_EQ(updates.size(), 1000U);
  ScalerState state{updates.front().scale_before, 0};
  for (const trace::ScalerUpdate& update : updates) {
    EXPECT_EQ(state, (ScalerState{update.scale_before, update.tracker_before})) << "step " << update.step;
    state = updated(state, update.found_inf, factors_of(update));
    EXPECT_TRUE(same_bits(state.scale, update.scale_after)) << "step " << update.step;
    EXPECT_EQ(state.tracker, update.tracker_after);
  }
}

std::vector<const trace::ScalerUpdate*> pointers(const std::vector<trace::ScalerUpdate>& updates) {
  std::vector<const trace::ScalerUpdate*> result;
  for (const trace::ScalerUpdate& update : updates)
    result.push_back(&update);
  return result;
}

std::vector<trace::ScalerUpdate> regular(std::size_t count) {
  std::vector<trace::ScalerUpdate> updates;
  ScalerState state;
  for (std::size_t i = 0; i < count; ++i) {
    trace::ScalerUpdate update;
    update.step = static_cast<std::int64_t>(i);
    update.scaler = 0;
    update.growth_factor = 2;
    update.backoff_factor = 0.5;
    update.growth_interval = 4;
    update.found_inf = i % 7 == 0 ? 1.0F : 0.0F;
    update.scale_before = state.scale;
    update.tracker_before = state.tracker;
    state = updated(state, update.found_inf, factors_of(update));
    update.scale_after = state.scale;
    update.tracker_after = state.tracker;
    updates.push_back(update);
  }
  return updates;
}

TEST(ScalerReplay, AgreesWithAScalerThatIsLeftAlone) {
  const auto updates = regular(50);
  const ScalerReplay result = replay(pointers(updates));
  EXPECT_TRUE(result.disagreements.empty());
  EXPECT_EQ(result.several_updates_in_a_step, 0);
}

TEST(ScalerReplay, FindsWhoElseMovedTheScale) {
  auto updates = regular(12);
  for (std::size_t i = 5; i < updates.size(); ++i) {  // A scale was set by hand, or state was loaded, before step 5.
    updates[i].scale_before *= 8;
    updates[i].scale_after *= 8;
  }
  updates[9].assigned = true;  // The tracker stays, whatever the record says of it.
  updates[9].scale_after = 4 * updates[9].scale_before;
  ScalerState state{updates[9].scale_after, updates[8].tracker_after};
  for (std::size_t i = 10; i < updates.size(); ++i) {
    updates[i].scale_before = state.scale;
    updates[i].tracker_before = state.tracker;
    state = updated(state, updates[i].found_inf, factors_of(updates[i]));
    updates[i].scale_after = state.scale;
    updates[i].tracker_after = state.tracker;
  }
  updates[11].scale_after = 3;
  updates[11].step = 10;
  const ScalerReplay result = replay(pointers(updates));
  ASSERT_EQ(result.disagreements.size(), 3U);
  EXPECT_EQ(result.disagreements[0].kind, Disagreement::changed_between);
  EXPECT_EQ(result.disagreements[0].step, 5);
  EXPECT_EQ(result.disagreements[0].recorded.scale, result.disagreements[0].expected.scale * 8);
  EXPECT_EQ(result.disagreements[1].kind, Disagreement::assigned);
  EXPECT_EQ(result.disagreements[1].step, 9);
  EXPECT_EQ(result.disagreements[2].kind, Disagreement::not_as_computed);
  EXPECT_EQ(result.disagreements[2].update, 11U);
  EXPECT_EQ(result.several_updates_in_a_step, 1);
}

TEST(ScalerReplay, SettingWhatIsThereChangesNothing) {
  auto updates = regular(3);
  trace::ScalerUpdate clamp = updates[1];
  clamp.assigned = true;
  clamp.scale_before = clamp.scale_after;
  clamp.tracker_before = clamp.tracker_after = 0;
  updates.insert(updates.begin() + 2, clamp);
  const ScalerReplay result = replay(pointers(updates));
  EXPECT_TRUE(result.disagreements.empty());
  EXPECT_EQ(result.several_updates_in_a_step, 0);
}

TEST(ScalerReplay, NoticesOtherSettings) {
  auto updates = regular(2);
  updates[1].growth_interval = 100;
  const ScalerReplay result = replay(pointers(updates));
  ASSERT_EQ(result.disagreements.size(), 1U);
  EXPECT_EQ(result.disagreements[0].kind, Disagreement::settings_changed);
}

}  // namespace
}  // namespace ampscope::analyzers
