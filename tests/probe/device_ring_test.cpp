#include "probe/record/device_ring.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/stats/fake_device.h"

namespace ampscope::record {
namespace {

using stats::StatisticsDevice;
using testing::ElementsAre;
using testing::IsEmpty;

class DeviceRingTest : public testing::Test {
 protected:
  /// Looks at one float on a stream.
  std::uint64_t look(const float& value, std::int64_t object, void* stream = nullptr) {
    return look_at({view_of(value)}, {object}, stream).front();
  }

  std::vector<std::uint64_t> look_at(std::vector<stats::TensorView> views, const std::vector<std::int64_t>& objects,
                                     void* stream = nullptr) {
    std::vector<DeviceLook> looks(views.size());
    for (std::size_t i = 0; i < looks.size(); ++i)
      looks[i].object = objects[i];
    ring.look(stream, views, looks);
    std::vector<std::uint64_t> numbers;
    for (const DeviceLook& look : looks)
      numbers.push_back(look.number);
    return numbers;
  }

  static stats::TensorView view_of(const float& value) {
    stats::TensorView view;
    view.data = &value;
    view.dtype = trace::DType::float32;
    view.count = 1;
    return view;
  }

  std::vector<std::pair<std::int64_t, double>> collect() {
    std::vector<std::pair<std::int64_t, double>> results;
    ring.collect(
        [&](const DeviceLook& look, const stats::FlatStats& stats) { results.emplace_back(look.object, stats.max); });
    return results;
  }

  stats::FakeDevice device;
  DeviceRing ring{device};
};

TEST_F(DeviceRingTest, ResultsComeLaterWithWhatTheyWereFor) {
  float value = 3;
  EXPECT_EQ(look(value, 7), 1U);
  value = 4;  // The look was at what stood there then.
  EXPECT_EQ(look(value, 8), 2U);
  ring.send_for();
  EXPECT_THAT(collect(), IsEmpty());
  EXPECT_EQ(ring.outstanding(), 2);
  device.arrive(1);
  EXPECT_THAT(collect(), ElementsAre(std::pair(7, 3.0), std::pair(8, 4.0)));
  EXPECT_THAT(collect(), IsEmpty());
  EXPECT_EQ(ring.outstanding(), 0);
}

TEST_F(DeviceRingTest, ManyTensorsShareALaunch) {
  const std::vector<float> values(1000, 2.0F);
  std::vector<stats::TensorView> views;
  std::vector<std::int64_t> objects;
  for (std::size_t i = 0; i < values.size(); ++i) {
    views.push_back(view_of(values[i]));
    objects.push_back(static_cast<std::int64_t>(i));
  }
  look_at(views, objects);
  EXPECT_EQ(device.launches, (1000 + StatisticsDevice::max_batch - 1) / StatisticsDevice::max_batch);
  ring.send_for();
  device.arrive(100);
  const auto results = collect();
  ASSERT_EQ(results.size(), 1000U);
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].first, objects[i]);
  EXPECT_EQ(ring.refused(), 0);
}

TEST_F(DeviceRingTest, WiderResultsTakeTheRowsTheyNeed) {
  const std::vector<double> values(100, -5.0);
  std::vector<stats::TensorView> views(100, view_of(0.0F));
  for (std::size_t i = 0; i < views.size(); ++i) {
    views[i].data = &values[i];
    views[i].dtype = trace::DType::float64;
  }
  look_at(views, std::vector<std::int64_t>(100, 1));
  ring.send_for();
  device.arrive(100);
  const auto results = collect();
  ASSERT_EQ(results.size(), 100U);  // 700 rows: several slots.
  for (const auto& result : results)
    EXPECT_EQ(result.second, -5.0);
}

TEST_F(DeviceRingTest, StreamsHaveSlotsOfTheirOwn) {
  const float value = 1;
  int a = 0;
  int b = 0;
  look(value, 1, &a);
  look(value, 2, &b);
  look(value, 3, &a);
  ring.send_for();
  EXPECT_EQ(device.fetched.size(), 2U);
  device.arrive(1);
  EXPECT_THAT(collect(), ElementsAre(std::pair(1, 1.0), std::pair(3, 1.0)));
  device.arrive(1);
  EXPECT_THAT(collect(), ElementsAre(std::pair(2, 1.0)));
}

TEST_F(DeviceRingTest, AFullRingRefusesAndCounts) {
  const float value = 1;
  constexpr int room = StatisticsDevice::slots * StatisticsDevice::rows;
  for (int i = 0; i < room; ++i)
    ASSERT_NE(look(value, i), 0U);
  EXPECT_EQ(look(value, -2), 0U);
  EXPECT_EQ(ring.refused(), 1);
  device.arrive(1);
  EXPECT_EQ(collect().size(), static_cast<std::size_t>(StatisticsDevice::rows));
  EXPECT_NE(look(value, 1), 0U) << "there is room again";
}

TEST_F(DeviceRingTest, NothingIsLaunchedWhileAGraphIsCaptured) {
  const float value = 1;
  look(value, 1);
  device.captures = true;
  EXPECT_EQ(look(value, 2), 0U);
  EXPECT_EQ(device.launches, 1);
  EXPECT_EQ(ring.captured(), 1);
  ring.send_for();
  EXPECT_THAT(device.fetched, IsEmpty()) << "an event on the stream would become part of the graph";
  device.captures = false;
  ring.send_for();
  device.arrive(1);
  EXPECT_THAT(collect(), ElementsAre(std::pair(1, 1.0)));
}

TEST_F(DeviceRingTest, AFailedLaunchIsCountedAndTheRestGoesOn) {
  const float value = 1;
  device.refuses = true;
  EXPECT_EQ(look(value, 1), 0U);
  EXPECT_EQ(ring.refused(), 1);
  device.refuses = false;
  EXPECT_NE(look(value, 2), 0U);
  ring.send_for();
  device.arrive(1);
  EXPECT_THAT(collect(), ElementsAre(std::pair(2, 1.0)));
}

TEST_F(DeviceRingTest, ADeviceThatFailsLosesWhatWasOutstanding) {
  const float value = 1;
  look(value, 1);
  ring.send_for();
  device.gone = true;
  EXPECT_THAT(collect(), IsEmpty());
  EXPECT_EQ(ring.lost(), 1);
  EXPECT_EQ(ring.outstanding(), 0);
}

TEST_F(DeviceRingTest, TheEndCollectsWhatIsStillOnItsWay) {
  const float value = 6;
  look(value, 1);
  device.at_once = true;
  std::vector<std::int64_t> seen;
  ring.finish(1'000'000'000, [&](const DeviceLook& look, const stats::FlatStats&) { seen.push_back(look.object); });
  EXPECT_THAT(seen, ElementsAre(1));
  EXPECT_EQ(ring.lost(), 0);
}

TEST_F(DeviceRingTest, TheEndDoesNotWaitForEver) {
  const float value = 6;
  look(value, 1);
  ring.finish(3'000'000, [](const DeviceLook&, const stats::FlatStats&) { FAIL() << "nothing arrives"; });
  EXPECT_EQ(ring.lost(), 1);
}

TEST_F(DeviceRingTest, AForkedChildLeavesTheDeviceAlone) {
  const float value = 1;
  look(value, 1);
  ring.send_for();
  device.arrive(1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ring.abandon();
    const int before = device.launches;
    const bool quiet = look(value, 2) == 0 && device.launches == before && collect().empty();
    _exit(quiet ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(collect().size(), 1U) << "the parent's own go on";
}

}  // namespace
}  // namespace ampscope::record
