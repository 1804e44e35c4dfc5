#include "probe/record/fast_lane.h"

#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ampscope::record {
namespace {

bool push(FastLane& lane, const std::vector<std::uint8_t>& payload) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(payload))};
  return lane.push(MessageKind::numerics, parts);
}

TEST(FastLane, GivesMessagesBackInOrderAcrossTheEndOfItsBuffer) {
  FastLane lane(4096);
  std::mt19937 random(7);
  int sent = 0;
  int received = 0;
  const auto take = [&](MessageKind kind, std::span<const std::byte> bytes) {
    EXPECT_EQ(kind, MessageKind::numerics);
    EXPECT_EQ(static_cast<int>(bytes.front()), received % 256);
    ++received;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::uint8_t> payload(1 + random() % 700, static_cast<std::uint8_t>(sent % 256));
    if (push(lane, payload)) ++sent;
    if (round % 3 == 0) lane.drain(take);
  }
  lane.drain(take);
  EXPECT_GT(sent, 1000);
  EXPECT_EQ(received, sent);
}

TEST(FastLane, CountsWhatItHasNoRoomForAndKeepsTheRest) {
  FastLane lane(4096);
  int sent = 0;
  while (push(lane, std::vector<std::uint8_t>(100, 1)))
    ++sent;
  EXPECT_FALSE(push(lane, std::vector<std::uint8_t>(100, 1)));
  EXPECT_EQ(lane.dropped(), 2U);
  EXPECT_TRUE(lane.crowded());
  int received = 0;
  lane.drain([&](MessageKind, std::span<const std::byte>) { ++received; });
  EXPECT_EQ(received, sent);
  EXPECT_TRUE(push(lane, std::vector<std::uint8_t>(100, 1)));
}

TEST(FastLane, AMessageLargerThanTheBufferIsDroppedNotTorn) {
  FastLane lane(4096);
  EXPECT_FALSE(push(lane, std::vector<std::uint8_t>(5000, 1)));
  EXPECT_EQ(lane.dropped(), 1U);
  lane.drain([](MessageKind, std::span<const std::byte>) { FAIL() << "nothing was pushed"; });
}

TEST(FastLane, TwoThreadsLoseNothingThatWasAccepted) {
  FastLane lane(16384);
  std::atomic<bool> done{false};
  std::uint64_t accepted = 0;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < 200'000; ++i) {
      const std::span<const std::byte> parts[] = {std::as_bytes(std::span(&i, 1))};
      if (lane.push(MessageKind::step, parts)) ++accepted;
    }
    done = true;
  });
  std::uint64_t received = 0;
  std::uint64_t last = 0;
  const auto take = [&](MessageKind, std::span<const std::byte> bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    EXPECT_TRUE(received == 0 || value > last);
    last = value;
    ++received;
  };
  while (!done)
    lane.drain(take);
  producer.join();
  lane.drain(take);
  EXPECT_EQ(received, accepted);
  EXPECT_EQ(accepted + lane.dropped(), 200'000U);
}

}  // namespace
}  // namespace ampscope::record
