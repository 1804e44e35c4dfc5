// What the CUDA kernels compute, lane by lane on the host, against the kernels for processors.
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/stats/cpu/kernel_paths.h"
#include "tests/stats/cuda_host_block.h"
#include "tests/stats/same_statistics.h"

namespace ampscope::stats::cuda {
namespace {

using testing::random_bits;

void expect_same_as_processor(const TensorView& view, const std::string& what) {
  auto expected = std::make_unique<FlatStats>();
  stats::accumulate(scalar_path, view, *expected);
  const auto found = look_on_host(view);
  ASSERT_TRUE(found->supported) << what;
  EXPECT_TRUE(found->sound) << what << ": counters overflowed or were left over";
  testing::expect_same(found->stats, *expected, what);
}

template <typename Bits>
TensorView view_of(const std::vector<Bits>& bits, trace::DType dtype, std::size_t from = 0) {
  TensorView view;
  view.data = bits.data() + from;
  view.dtype = dtype;
  view.count = static_cast<std::int64_t>(bits.size() - from);
  return view;
}

TEST(CudaCounting, EveryPatternOfTheShortFormats) {
  std::vector<std::uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  std::vector<std::uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  expect_same_as_processor(view_of(halves, trace::DType::float16), "float16");
  expect_same_as_processor(view_of(halves, trace::DType::bfloat16), "bfloat16");
  for (const auto dtype : {trace::DType::float8_e4m3fn, trace::DType::float8_e5m2, trace::DType::float8_e4m3fnuz,
                           trace::DType::float8_e5m2fnuz}) {
    expect_same_as_processor(view_of(bytes, dtype), trace::dtype_name(dtype));
  }
}

TEST(CudaCounting, EachPatternAlone) {
  // Alone, so that every pattern is the minimum and the maximum once.
  std::vector<std::uint16_t> half(1);
  for (const auto dtype : {trace::DType::float16, trace::DType::bfloat16}) {
    for (unsigned pattern = 0; pattern < 65536; pattern += 7) {
      half[0] = static_cast<std::uint16_t>(pattern);
      expect_same_as_processor(view_of(half, dtype), "pattern " + std::to_string(pattern));
      if (HasFailure()) return;
    }
  }
  std::vector<std::uint8_t> byte(1);
  for (unsigned pattern = 0; pattern < 256; ++pattern) {
    byte[0] = static_cast<std::uint8_t>(pattern);
    expect_same_as_processor(view_of(byte, trace::DType::float8_e4m3fnuz), "fp8 " + std::to_string(pattern));
    expect_same_as_processor(view_of(byte, trace::DType::float8_e4m3fn), "fp8 " + std::to_string(pattern));
  }
}

TEST(CudaCounting, RandomBitsInSeveralChunks) {
  expect_same_as_processor(view_of(random_bits<std::uint32_t>(200'003, 1), trace::DType::float32), "float32");
  expect_same_as_processor(view_of(random_bits<std::uint64_t>(100'001, 2), trace::DType::float64), "float64");
  expect_same_as_processor(view_of(random_bits<std::uint16_t>(300'017, 3), trace::DType::bfloat16), "bfloat16");
  const auto parts = random_bits<std::uint32_t>(50'006, 4);
  auto complex = view_of(parts, trace::DType::complex64);
  complex.count /= 2;
  expect_same_as_processor(complex, "complex64");
}

TEST(CudaCounting, AnyLengthFromAnyAddress) {
  const auto halves = random_bits<std::uint16_t>(320, 5);
  const auto words = random_bits<std::uint32_t>(320, 6);
  const auto doubles = random_bits<std::uint64_t>(320, 7);
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::int64_t count = 0; count <= 300; ++count) {
      auto half = view_of(halves, trace::DType::float16, from);
      half.count = count;
      expect_same_as_processor(half, "float16 from " + std::to_string(from) + ", " + std::to_string(count));
      auto word = view_of(words, trace::DType::float32, from);
      word.count = count;
      expect_same_as_processor(word, "float32 from " + std::to_string(from) + ", " + std::to_string(count));
      auto longer = view_of(doubles, trace::DType::float64, from);
      longer.count = count;
      expect_same_as_processor(longer, "float64 from " + std::to_string(from) + ", " + std::to_string(count));
      if (HasFailure()) return;
    }
  }
}

TEST(CudaCounting, OneExponentFillsNoCounterOver) {
  for (const auto dtype : {trace::DType::float16, trace::DType::bfloat16}) {
    expect_same_as_processor(view_of(std::vector<std::uint16_t>(500'000, 0x3c00), dtype), "ones");
    expect_same_as_processor(view_of(std::vector<std::uint16_t>(500'000, 0x8001), dtype), "subnormals");
    expect_same_as_processor(view_of(std::vector<std::uint16_t>(500'000, 0), dtype), "zeros");
  }
  expect_same_as_processor(view_of(std::vector<std::uint8_t>(500'000, 0x31), trace::DType::float8_e4m3fn), "fp8");
  expect_same_as_processor(view_of(std::vector<std::uint32_t>(500'000, 0x3f800000), trace::DType::float32), "floats");
  expect_same_as_processor(view_of(std::vector<std::uint64_t>(50'000, 0x3ff0000000000000), trace::DType::float64),
                           "doubles");
}

TEST(CudaCounting, TensorsThatAreNotDense) {
  const auto bits = random_bits<std::uint32_t>(std::size_t{64} * 1024, 8);
  TensorView view = view_of(bits, trace::DType::float32);
  view.contiguous = false;
  const auto shaped = [&](std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides, std::int64_t from) {
    view.data = bits.data() + from;
    view.dims = static_cast<int>(sizes.size());
    view.count = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      view.sizes[i] = sizes[i];
      view.strides[i] = strides[i];
      view.count *= sizes[i];
    }
    return view;
  };
  expect_same_as_processor(shaped({100, 200}, {256, 1}, 3), "rows of a wider matrix");
  expect_same_as_processor(shaped({200, 100}, {1, 256}, 0), "the same transposed");
  expect_same_as_processor(shaped({30, 40, 7}, {1500, 3, 200}, 1), "no dimension dense");
  expect_same_as_processor(shaped({64, 500}, {0, 1}, 0), "an expanded row");
  expect_same_as_processor(shaped({64, 500}, {0, 0}, 9), "an expanded number");
  expect_same_as_processor(shaped({100, 50}, {-300, 2}, 40'000), "backwards");
  expect_same_as_processor(shaped({0, 5}, {5, 1}, 0), "empty");
}

TEST(CudaCounting, SaysWhatItCannotLookAt) {
  const std::vector<std::int32_t> integers(4);
  EXPECT_FALSE(look_on_host(view_of(integers, trace::DType::int32))->supported);
  const std::vector<std::int32_t> tracker{-17};
  const auto one = look_on_host(view_of(tracker, trace::DType::int32));
  ASSERT_TRUE(one->supported);
  EXPECT_EQ(one->stats.min, -17);
  EXPECT_EQ(one->stats.max, -17);
}

TEST(CudaBatch, ChunksOfATensorFollowThoseOfTheOneBefore) {
  const std::vector<float> small(10);
  const std::vector<float> large(100'000);
  Batch batch;
  for (const auto* values : {&small, &large, &small}) {
    TensorView view;
    view.data = values->data();
    view.dtype = trace::DType::float32;
    view.count = static_cast<std::int64_t>(values->size());
    Descriptor descriptor;
    Geometry geometry;
    ASSERT_EQ(describe(view, descriptor, geometry), Shape::dense);
    add(batch, descriptor, static_cast<int>(batch.count));
  }
  EXPECT_EQ(batch.count, 3U);
  EXPECT_EQ(batch.tensors[1].first_chunk, 1U);
  EXPECT_EQ(batch.tensors[2].first_chunk, 1U + 4U);  // 400,000 bytes in pieces of 128 KiB
  EXPECT_EQ(batch.chunks, 6U);
  EXPECT_EQ(batch.tensors[2].row, 2);
  EXPECT_EQ(rows_of(Format::float32), 1);
  EXPECT_EQ(rows_of(Format::float64), 7);
}

}  // namespace
}  // namespace ampscope::stats::cuda
