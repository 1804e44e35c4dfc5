// Tensors of any strides: the same elements as the reference walks index by index.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/stats/cpu/kernel_paths.h"
#include "tests/stats/reference.h"

namespace ampscope::stats::testing {
namespace {

using ::testing::IsEmpty;

std::vector<std::uint64_t> walk(const Definition& format, const TensorView& view) {
  std::vector<std::uint64_t> patterns;
  std::vector<std::int64_t> index(static_cast<std::size_t>(view.dims), 0);
  for (int d = 0; d < view.dims; ++d) {
    if (view.sizes[static_cast<std::size_t>(d)] == 0) return patterns;
  }
  while (true) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d)
      at += index[d] * view.strides[d];
    patterns.push_back(pattern(format, view.data, at));
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == view.sizes[d - 1])
      index[--d] = 0;
    if (d == 0) return patterns;
  }
}

void expect_exact(const TensorView& view) {
  const Definition& format = definition(view.dtype);
  const std::vector<std::uint64_t> patterns = walk(format, view);
  const trace::TensorStats expected = reference_stats(format, patterns);
  for (const char* name : path_names()) {
    const KernelPath& path = *find_path(name);
    FlatStats stats;
    accumulate(path, view, stats);
    EXPECT_THAT(difference(expected, stats), IsEmpty()) << name;
    EXPECT_THAT(difference(reference_sentinel(format, patterns), check_nonfinite(path, view)), IsEmpty()) << name;
    EXPECT_THAT(difference(expected, count_nonfinite(path, view)), IsEmpty()) << name;
  }
}

std::vector<unsigned char> random_memory(std::size_t bytes, std::mt19937_64& random) {
  std::vector<unsigned char> memory(bytes);
  for (unsigned char& byte : memory)
    byte = static_cast<unsigned char>(random());
  return memory;
}

TensorView strided(trace::DType dtype, const void* data, std::vector<std::int64_t> sizes,
                   std::vector<std::int64_t> strides) {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.contiguous = false;
  view.dims = static_cast<int>(sizes.size());
  view.count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
  std::copy(sizes.begin(), sizes.end(), view.sizes.begin());
  std::copy(strides.begin(), strides.end(), view.strides.begin());
  return view;
}

TEST(Views, RandomStrides) {
  std::mt19937_64 random(21);
  const std::vector<unsigned char> memory = random_memory(1 << 18, random);
  for (int round = 0; round < 400; ++round) {
    const Definition& format = definitions()[random() % definitions().size()];
    const int dims = static_cast<int>(random() % 6);
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
    std::int64_t lowest = 0;
    std::int64_t highest = 0;
    std::int64_t count = 1;
    for (int d = 0; d < dims; ++d) {
      std::int64_t size = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 40 : random() % 5 + 1);
      if (count * size > 20000) size = 1;
      std::int64_t stride = static_cast<std::int64_t>(random() % 60) - 20;
      if (random() % 3 == 0) stride = count;
      count *= size;
      sizes.push_back(size);
      strides.push_back(stride);
      const std::int64_t reach = size > 0 ? (size - 1) * stride : 0;
      (reach < 0 ? lowest : highest) += reach;
    }
    ASSERT_LT((highest - lowest + 1) * format.bytes, static_cast<std::int64_t>(memory.size()));
    SCOPED_TRACE(::testing::Message() << format.name << " sizes " << ::testing::PrintToString(sizes) << " strides "
                                      << ::testing::PrintToString(strides));
    expect_exact(strided(format.dtype, memory.data() - lowest * format.bytes, sizes, strides));
  }
}

TEST(Views, PermutedDimensions) {
  std::mt19937_64 random(22);
  const std::vector<unsigned char> memory = random_memory(8 * 3 * 5 * 16 * 17 * 2, random);
  std::vector<int> order = {0, 1, 2, 3};
  do {
    const std::int64_t sizes[] = {3, 5, 16, 17};
    std::vector<std::int64_t> view_sizes(4);
    std::vector<std::int64_t> view_strides(4);
    std::int64_t stride = 1;
    for (int d = 3; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(order[static_cast<std::size_t>(d)]);
      view_sizes[at] = sizes[at];
      view_strides[at] = stride;
      stride *= sizes[at];
    }
    for (const Definition& format : definitions()) {
      SCOPED_TRACE(format.name);
      expect_exact(strided(format.dtype, memory.data(), view_sizes, view_strides));
      // The same with the last element of every row cut off: nothing is dense any more.
      view_sizes[static_cast<std::size_t>(order[3])] -= 1;
      expect_exact(strided(format.dtype, memory.data(), view_sizes, view_strides));
      view_sizes[static_cast<std::size_t>(order[3])] += 1;
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Views, LongRowsAreScannedWhereTheyLie) {
  std::mt19937_64 random(23);
  const std::vector<unsigned char> memory = random_memory(40 * 3000 * 4, random);
  for (const std::int64_t row : {511, 512, 513, 1024, 2999}) {
    expect_exact(strided(trace::DType::float32, memory.data(), {40, row}, {3000, 1}));
    expect_exact(strided(trace::DType::float16, memory.data(), {row, 2, 40}, {1, 3000, 3000}));
    expect_exact(strided(trace::DType::float32, memory.data() + 3000 * 39 * 4, {40, row}, {-3000, 1}));
  }
}

TEST(Views, RepeatedElementsCountAsOftenAsTheyAreSeen) {
  std::mt19937_64 random(24);
  const std::vector<unsigned char> memory = random_memory(4096, random);
  expect_exact(strided(trace::DType::float32, memory.data(), {7, 13, 100}, {0, 0, 1}));
  expect_exact(strided(trace::DType::float32, memory.data(), {100, 7, 3}, {1, 0, 200}));
  expect_exact(strided(trace::DType::bfloat16, memory.data(), {500}, {0}));
  expect_exact(strided(trace::DType::float64, memory.data(), {3, 500}, {0, 0}));
}

TEST(Views, Scalars) {
  const float value = -3;
  expect_exact(strided(trace::DType::float32, &value, {}, {}));
  expect_exact(strided(trace::DType::float32, &value, {1, 1, 1}, {7, -2, 0}));
}

TEST(Views, SixteenDimensions) {
  std::mt19937_64 random(25);
  const std::vector<unsigned char> memory = random_memory(std::size_t{8} << 17, random);
  std::vector<std::int64_t> sizes(16, 2);
  std::vector<std::int64_t> strides(16);
  for (std::size_t d = 0; d < 16; ++d)
    strides[d] = std::int64_t{3} << (d % 2 == 0 ? d / 2 : 15 - d / 2) >> 1;
  expect_exact(strided(trace::DType::float32, memory.data(), sizes, strides));
}

TEST(Views, NothingToLookAt) {
  const float value = NAN;
  for (const char* name : path_names()) {
    const KernelPath& path = *find_path(name);
    TensorView no_memory = dense(trace::DType::float32, nullptr, 10);
    TensorView no_elements = dense(trace::DType::float32, &value, 0);
    TensorView empty_dimension = strided(trace::DType::float32, &value, {3, 0, 2}, {1, 1, 1});
    empty_dimension.count = 6;  // a caller's mistake must not be read past
    for (const TensorView& view : {no_memory, no_elements, empty_dimension}) {
      FlatStats stats;
      accumulate(path, view, stats);
      EXPECT_EQ(stats.count, 0U);
      EXPECT_FALSE(check_nonfinite(path, view).nonfinite);
      EXPECT_EQ(count_nonfinite(path, view).nan, 0U);
    }
  }
}

// complex64 and complex128 are twice as many reals.
TEST(Views, ComplexIsTwiceAsManyReals) {
  std::mt19937_64 random(26);
  const std::vector<unsigned char> memory = random_memory(1 << 16, random);
  const struct {
    trace::DType complex;
    trace::DType real;
  } types[] = {{trace::DType::complex64, trace::DType::float32}, {trace::DType::complex128, trace::DType::float64}};
  for (const auto& type : types) {
    const TensorView views[] = {
        dense(type.complex, memory.data(), 1001),
        strided(type.complex, memory.data(), {30, 20}, {40, 2}),
        strided(type.complex, memory.data(), {5, 30, 20}, {0, 40, 1}),
    };
    const TensorView as_reals[] = {
        dense(type.real, memory.data(), 2002),
        strided(type.real, memory.data(), {30, 20, 2}, {80, 4, 1}),
        strided(type.real, memory.data(), {5, 30, 20, 2}, {0, 80, 2, 1}),
    };
    for (std::size_t i = 0; i < 3; ++i) {
      for (const char* name : path_names()) {
        const KernelPath& path = *find_path(name);
        FlatStats stats;
        accumulate(path, views[i], stats);
        const Definition& format = definition(type.real);
        const std::int64_t count = as_reals[i].count;
        const trace::TensorStats expected = as_reals[i].contiguous ? reference_stats(format, memory.data(), count)
                                                                   : reference_stats(format, walk(format, as_reals[i]));
        EXPECT_THAT(difference(expected, stats), IsEmpty()) << name;
        EXPECT_THAT(difference(expected, count_nonfinite(path, views[i])), IsEmpty()) << name;
      }
    }
  }
}

}  // namespace
}  // namespace ampscope::stats::testing
