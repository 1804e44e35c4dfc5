// The CUDA kernels on a GPU against those for processors, bit for bit.
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "probe/stats/device.h"
#include "probe/stats/kernels.h"
#include "tests/stats/same_statistics.h"

namespace ampscope::stats {
namespace {

using testing::random_bits;

StatisticsDevice* device() {
  static StatisticsDevice* const opened = []() -> StatisticsDevice* {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return nullptr;
    void* const library = dlopen(AMPSCOPE_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      ADD_FAILURE() << dlerror();
      return nullptr;
    }
    const auto open = reinterpret_cast<OpenStatisticsDevice>(dlsym(library, device_entry));
    const char* why = "";
    StatisticsDevice* const made = open(device_interface_version, 0, &why);
    if (!made) ADD_FAILURE() << why;
    return made;
  }();
  return opened;
}

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!device()) GTEST_SKIP() << "there is no CUDA device";
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    for (void* memory : memory_)
      cudaFree(memory);
    if (stream_) cudaStreamDestroy(stream_);
  }

  template <typename Bits>
  TensorView on_device(const std::vector<Bits>& bits, trace::DType dtype) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bits.size() * sizeof(Bits)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory, bits.data(), bits.size() * sizeof(Bits), cudaMemcpyHostToDevice), cudaSuccess);
    memory_.push_back(memory);
    TensorView view;
    view.data = memory;
    view.dtype = dtype;
    view.count = static_cast<std::int64_t>(bits.size());
    return view;
  }

  /// Waits in the test; nothing of ours does.
  void arrive(int slot) {
    const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (device()->poll(slot) == Arrival::pending && std::chrono::steady_clock::now() < give_up_at)
      std::this_thread::yield();
    ASSERT_EQ(device()->poll(slot), Arrival::ready);
  }

  void expect_same(const TensorView& there, const TensorView& here, const std::string& what) {
    ASSERT_TRUE(device()->launch(0, 0, stream_, {&there, 1})) << what;
    ASSERT_TRUE(device()->fetch(0, device()->rows_for(there), stream_));
    arrive(0);
    auto found = std::make_unique<FlatStats>();
    device()->read(0, 0, there, *found);
    expect_equal(*found, here, what);
  }

  static void expect_equal(const FlatStats& found, const TensorView& here, const std::string& what) {
    auto expected = std::make_unique<FlatStats>();
    accumulate(here, *expected);
    testing::expect_same(found, *expected, what);
  }

  template <typename Bits>
  void check(const std::vector<Bits>& bits, trace::DType dtype, const std::string& what) {
    TensorView here;
    here.data = bits.data();
    here.dtype = dtype;
    here.count = static_cast<std::int64_t>(bits.size());
    expect_same(on_device(bits, dtype), here, what);
  }

  cudaStream_t stream_ = nullptr;
  std::vector<void*> memory_;
};

TEST_F(CudaDeviceTest, EveryPatternOfTheShortFormats) {
  std::vector<std::uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  check(halves, trace::DType::float16, "float16");
  check(halves, trace::DType::bfloat16, "bfloat16");
  std::vector<std::uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  for (const auto dtype : {trace::DType::float8_e4m3fn, trace::DType::float8_e5m2, trace::DType::float8_e4m3fnuz,
                           trace::DType::float8_e5m2fnuz}) {
    check(bytes, dtype, trace::dtype_name(dtype));
  }
}

TEST_F(CudaDeviceTest, RandomBits) {
  check(random_bits<std::uint32_t>(10'000'019, 1), trace::DType::float32, "float32");
  check(random_bits<std::uint64_t>(3'000'017, 2), trace::DType::float64, "float64");
  check(random_bits<std::uint16_t>(10'000'019, 3), trace::DType::bfloat16, "bfloat16");
}

TEST_F(CudaDeviceTest, OneValueManyTimes) {
  check(std::vector<std::uint16_t>(20'000'000, 0x3c00), trace::DType::float16, "ones");
  check(std::vector<std::uint16_t>(20'000'000, 0x0001), trace::DType::float16, "subnormals");
  check(std::vector<std::uint32_t>(10'000'000, 0x7fc00000), trace::DType::float32, "NaN");
  check(std::vector<std::uint64_t>(2'000'000, 0x3ff0000000000000), trace::DType::float64, "doubles");
}

TEST_F(CudaDeviceTest, EveryShortLengthFromEveryAddress) {
  const auto bits = random_bits<std::uint32_t>(400, 4);
  const TensorView whole = on_device(bits, trace::DType::float16);
  for (int from = 0; from < 8; ++from) {
    for (std::int64_t count = 0; count <= 300; count += 7) {
      TensorView there = whole;
      there.data = static_cast<const std::uint16_t*>(whole.data) + from;
      there.count = count;
      TensorView here = there;
      here.data = reinterpret_cast<const std::uint16_t*>(bits.data()) + from;
      expect_same(there, here, std::to_string(from) + ", " + std::to_string(count));
      if (HasFailure()) return;
    }
  }
}

TEST_F(CudaDeviceTest, ATensorThatIsNotDense) {
  const auto bits = random_bits<std::uint32_t>(1 << 16, 5);
  TensorView there = on_device(bits, trace::DType::float32);
  there.contiguous = false;
  there.dims = 3;
  there.sizes = {30, 40, 7};
  there.strides = {1500, 3, 200};
  there.count = 30 * 40 * 7;
  TensorView here = there;
  here.data = bits.data();
  expect_same(there, here, "strided");
  there.strides = here.strides = {0, 7, 1};
  expect_same(there, here, "expanded");
}

TEST_F(CudaDeviceTest, ManyTensorsInOneLaunch) {
  std::vector<std::vector<std::uint32_t>> bits;
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < StatisticsDevice::max_batch; ++i) {
    bits.push_back(random_bits<std::uint32_t>(1 + i * 37, 6 + i));
    views.push_back(on_device(bits.back(), trace::DType::float32));
  }
  ASSERT_TRUE(device()->launch(1, 0, stream_, views));
  ASSERT_TRUE(device()->fetch(1, StatisticsDevice::max_batch, stream_));
  arrive(1);
  auto found = std::make_unique<FlatStats>();
  for (std::size_t i = 0; i < views.size(); ++i) {
    found->reset();
    device()->read(1, static_cast<int>(i), views[i], *found);
    TensorView here = views[i];
    here.data = bits[i].data();
    expect_equal(*found, here, "tensor " + std::to_string(i));
  }
}

TEST_F(CudaDeviceTest, ASlotIsClearWhenItIsUsedAgain) {
  for (int round = 0; round < 3; ++round)
    check(random_bits<std::uint16_t>(100'003, 40 + static_cast<unsigned>(round)), trace::DType::bfloat16, "again");
}

TEST_F(CudaDeviceTest, StreamsDoNotWaitForOneAnother) {
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  const auto a = random_bits<std::uint32_t>(100'000, 50);
  const auto b = random_bits<std::uint32_t>(100'000, 51);
  const TensorView first = on_device(a, trace::DType::float32);
  const TensorView second = on_device(b, trace::DType::float32);
  ASSERT_TRUE(device()->launch(2, 0, stream_, {&first, 1}));
  ASSERT_TRUE(device()->launch(3, 0, other, {&second, 1}));
  ASSERT_TRUE(device()->fetch(3, 1, other));
  ASSERT_TRUE(device()->fetch(2, 1, stream_));
  arrive(2);
  arrive(3);
  auto found = std::make_unique<FlatStats>();
  device()->read(2, 0, first, *found);
  TensorView here = first;
  here.data = a.data();
  expect_equal(*found, here, "first stream");
  found->reset();
  device()->read(3, 0, second, *found);
  here.data = b.data();
  expect_equal(*found, here, "second stream");
  cudaStreamDestroy(other);
}

TEST_F(CudaDeviceTest, ACaptureIsLeftAlone) {
  const TensorView view = on_device(random_bits<std::uint32_t>(1000, 60), trace::DType::float32);
  ASSERT_TRUE(device()->launch(4, 0, stream_, {&view, 1}));
  cudaStream_t capturing = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(capturing, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_TRUE(device()->capturing(capturing));
  EXPECT_FALSE(device()->launch(5, 0, capturing, {&view, 1}));
  EXPECT_FALSE(device()->fetch(5, 1, capturing));
  // Work on other streams and polling go on, and the capture survives them.
  EXPECT_TRUE(device()->fetch(4, 1, stream_));
  static_cast<void>(device()->poll(4));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(capturing, &graph), cudaSuccess);
  std::size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 0U);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(capturing);
  arrive(4);
}

}  // namespace
}  // namespace ampscope::stats
