#include "probe/record/recent_calls.h"

#include <gtest/gtest.h>

namespace ampscope::record {
namespace {

TEST(RecentCalls, KeepsTheLastCallsOldestFirst) {
  RecentCalls recent;
  const auto size = static_cast<std::int64_t>(RecentCalls::size);
  for (std::int64_t i = 0; i < size + 44; ++i)
    recent.add(i / 10, i, static_cast<float>(i), false);
  recent.add(30, 7, 1, true);
  recent.freeze(30, 5);
  recent.add(31, 8, 1, false);
  recent.freeze(31, 6);  // Not the first.
  const trace::FlightRecord record = recent.take();
  EXPECT_EQ(record.step, 30);
  EXPECT_EQ(record.anomaly_order, 5);
  ASSERT_EQ(record.calls.size(), RecentCalls::size);
  for (std::size_t i = 0; i + 1 < record.calls.size(); ++i)
    EXPECT_EQ(record.calls[i].order + 1, record.calls[i + 1].order);
  EXPECT_EQ(record.calls.front().site, 45);
  EXPECT_EQ(record.calls.back().site, 7);
  EXPECT_TRUE(record.calls.back().nonfinite);
}

TEST(RecentCalls, HoldsFewWhenFewWereMade) {
  RecentCalls recent;
  recent.add(0, 1, 2, false);
  recent.add(0, 2, 3, true);
  recent.freeze(0, 0);
  const trace::FlightRecord record = recent.take();
  ASSERT_EQ(record.calls.size(), 2U);
  EXPECT_EQ(record.calls[1].site, 2);
}

TEST(RecentCalls, AfterAHarmlessAnomalyTheNextOneIsKept) {
  RecentCalls recent;
  recent.add(0, 1, 2, true);
  recent.freeze(0, 0);
  recent.thaw();
  recent.add(4, 2, 2, true);
  recent.freeze(4, 1);
  EXPECT_EQ(recent.take().step, 4);
  EXPECT_FALSE(recent.frozen());
}

}  // namespace
}  // namespace ampscope::record
