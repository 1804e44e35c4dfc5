// Every bit pattern of the small formats, and every exponent of the large ones.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/stats/cpu/kernel_paths.h"
#include "tests/stats/reference.h"

namespace ampscope::stats::testing {
namespace {

using ::testing::IsEmpty;

std::vector<unsigned char> memory_of(const Definition& format, std::span<const std::uint64_t> patterns) {
  std::vector<unsigned char> bytes;
  for (const std::uint64_t bits : patterns) {
    for (int i = 0; i < format.bytes; ++i)
      bytes.push_back(static_cast<unsigned char>(bits >> (8 * i)));
  }
  return bytes;
}

void expect_exact(const Definition& format, std::span<const std::uint64_t> patterns) {
  const std::vector<unsigned char> memory = memory_of(format, patterns);
  const TensorView view = dense(format.dtype, memory.data(), static_cast<std::int64_t>(patterns.size()));
  const trace::TensorStats expected = reference_stats(format, patterns);
  const Sentinel sentinel = reference_sentinel(format, patterns);
  for (const char* name : path_names()) {
    SCOPED_TRACE(std::string(name) + " " + format.name);
    const KernelPath& path = *find_path(name);
    FlatStats stats;
    accumulate(path, view, stats);
    EXPECT_THAT(difference(expected, stats), IsEmpty());
    EXPECT_THAT(difference(sentinel, check_nonfinite(path, view)), IsEmpty());
    EXPECT_THAT(difference(expected, count_nonfinite(path, view)), IsEmpty());
  }
}

std::vector<std::uint64_t> every_pattern(const Definition& format) {
  std::vector<std::uint64_t> patterns(std::size_t{1} << (8 * format.bytes));
  for (std::size_t i = 0; i < patterns.size(); ++i)
    patterns[i] = i;
  return patterns;
}

class SmallFormat : public ::testing::TestWithParam<trace::DType> {};

TEST_P(SmallFormat, EveryPatternTogether) {
  const Definition& format = definition(GetParam());
  std::vector<std::uint64_t> patterns = every_pattern(format);
  expect_exact(format, patterns);
  std::shuffle(patterns.begin(), patterns.end(), std::mt19937_64(1));
  expect_exact(format, patterns);
}

// One pattern at a time: a wrong bin cannot hide behind another wrong bin.
TEST_P(SmallFormat, EveryPatternAlone) {
  const Definition& format = definition(GetParam());
  for (const char* name : path_names()) {
    const KernelPath& path = *find_path(name);
    FlatStats stats;
    for (const std::uint64_t bits : every_pattern(format)) {
      stats.reset();
      const TensorView view = dense(format.dtype, &bits, 1);
      accumulate(path, view, stats);
      const std::uint64_t one[] = {bits};
      ASSERT_THAT(difference(reference_stats(format, one), stats), IsEmpty()) << name << " " << std::hex << bits;
      ASSERT_THAT(difference(reference_sentinel(format, one), check_nonfinite(path, view)), IsEmpty())
          << name << " " << std::hex << bits;
    }
  }
}

// All patterns with one exponent field after the other: no pattern of the next block is in the range of the last one.
TEST_P(SmallFormat, EveryExponentFillsABlock) {
  const Definition& format = definition(GetParam());
  std::vector<std::uint64_t> patterns;
  for (const std::uint64_t bits : every_pattern(format)) {
    for (int i = 0; i < (format.bytes == 1 ? 64 : 3); ++i)
      patterns.push_back(bits ^ (i % 2 == 0 ? 0 : 1));
  }
  expect_exact(format, patterns);
}

INSTANTIATE_TEST_SUITE_P(All, SmallFormat,
                         ::testing::Values(trace::DType::float16, trace::DType::bfloat16, trace::DType::float8_e4m3fn,
                                           trace::DType::float8_e5m2, trace::DType::float8_e4m3fnuz,
                                           trace::DType::float8_e5m2fnuz),
                         [](const auto& parameter) { return std::string(definition(parameter.param).name); });

class LargeFormat : public ::testing::TestWithParam<trace::DType> {};

std::vector<std::uint64_t> every_exponent(const Definition& format, std::mt19937_64& random, bool specials) {
  const std::uint64_t fraction_mask = (std::uint64_t{1} << format.fraction_bits) - 1;
  const int sign_shift = format.exponent_bits + format.fraction_bits;
  std::vector<std::uint64_t> patterns;
  for (std::uint64_t field = 0; field < (std::uint64_t{1} << format.exponent_bits) - (specials ? 0 : 1); ++field) {
    for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1}}) {
      const std::uint64_t base = sign << sign_shift | field << format.fraction_bits;
      for (const std::uint64_t fraction :
           {std::uint64_t{0}, std::uint64_t{1}, fraction_mask, random() & fraction_mask}) {
        patterns.push_back(base | fraction);
      }
    }
  }
  // Every place of a subnormal's leading one.
  for (int shift = 0; shift < format.fraction_bits; ++shift) {
    const std::uint64_t one = std::uint64_t{1} << shift;
    patterns.push_back(one);
    patterns.push_back(one | (random() & (one - 1)));
    patterns.push_back(std::uint64_t{1} << sign_shift | one | (random() & (one - 1)));
  }
  return patterns;
}

TEST_P(LargeFormat, EveryExponentInOrder) {
  const Definition& format = definition(GetParam());
  std::mt19937_64 random(2);
  expect_exact(format, every_exponent(format, random, true));
  expect_exact(format, every_exponent(format, random, false));
}

TEST_P(LargeFormat, EveryExponentShuffled) {
  const Definition& format = definition(GetParam());
  std::mt19937_64 random(3);
  for (const bool specials : {true, false}) {
    std::vector<std::uint64_t> patterns = every_exponent(format, random, specials);
    std::shuffle(patterns.begin(), patterns.end(), random);
    expect_exact(format, patterns);
  }
}

TEST_P(LargeFormat, EveryExponentFillsABlock) {
  const Definition& format = definition(GetParam());
  std::mt19937_64 random(4);
  std::vector<std::uint64_t> patterns;
  const int step = format.bytes == 8 ? 7 : 1;
  for (int field = 0; field < (1 << format.exponent_bits); field += step) {
    for (int i = 0; i < 2500; ++i) {
      const std::uint64_t fraction = random() & ((std::uint64_t{1} << format.fraction_bits) - 1);
      patterns.push_back((random() & 1) << (format.exponent_bits + format.fraction_bits) |
                         static_cast<std::uint64_t>(field) << format.fraction_bits | fraction);
    }
  }
  expect_exact(format, patterns);
}

TEST_P(LargeFormat, OnePatternAlone) {
  const Definition& format = definition(GetParam());
  std::mt19937_64 random(5);
  for (const std::uint64_t bits : every_exponent(format, random, true)) {
    const std::uint64_t one[] = {bits};
    expect_exact(format, one);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LargeFormat, ::testing::Values(trace::DType::float32, trace::DType::float64),
                         [](const auto& parameter) { return std::string(definition(parameter.param).name); });

TEST(OtherTypes, HaveNoStatistics) {
  const std::vector<std::uint64_t> memory(64, ~std::uint64_t{0});
  using trace::DType;
  for (const DType dtype : {DType::unknown, DType::boolean, DType::uint8, DType::int8, DType::int16, DType::int32,
                            DType::int64, DType::other}) {
    const TensorView view = dense(dtype, memory.data(), 64);
    for (const char* name : path_names()) {
      const KernelPath& path = *find_path(name);
      FlatStats stats;
      accumulate(path, view, stats);
      EXPECT_EQ(stats.count, 0U);
      EXPECT_FALSE(check_nonfinite(path, view).nonfinite);
      EXPECT_EQ(count_nonfinite(path, view).nan, 0U);
    }
  }
}

}  // namespace
}  // namespace ampscope::stats::testing
