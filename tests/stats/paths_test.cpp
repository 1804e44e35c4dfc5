// Every path against the reference: lengths, alignments, kinds of data, long runs, modes of the floating-point unit.
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "probe/stats/cpu/kernel_paths.h"
#include "tests/stats/reference.h"

namespace ampscope::stats::testing {
namespace {

using ::testing::IsEmpty;

void expect_exact(const KernelPath& path, const Definition& format, const void* data, std::int64_t count) {
  const TensorView view = dense(format.dtype, data, count);
  const trace::TensorStats expected = reference_stats(format, data, count);
  std::vector<std::uint64_t> patterns;
  for (std::int64_t i = 0; i < count; ++i)
    patterns.push_back(pattern(format, data, i));
  FlatStats stats;
  accumulate(path, view, stats);
  EXPECT_THAT(difference(expected, stats), IsEmpty()) << path.name << " " << format.name << " × " << count;
  EXPECT_THAT(difference(reference_sentinel(format, patterns), check_nonfinite(path, view)), IsEmpty())
      << path.name << " " << format.name << " × " << count;
  EXPECT_THAT(difference(expected, count_nonfinite(path, view)), IsEmpty())
      << path.name << " " << format.name << " × " << count;
}

/// The pattern nearest to `value` by cutting, good enough to make data.
std::uint64_t encode(const Definition& format, double value) {
  if (format.bytes == 8) return __builtin_bit_cast(std::uint64_t, value);
  const std::uint64_t sign =
      std::signbit(value) ? std::uint64_t{1} << (format.exponent_bits + format.fraction_bits) : 0;
  const double magnitude = std::fabs(value);
  const int smallest = 1 - format.bias;
  if (magnitude == 0) return format.specials == Definition::Specials::minus_zero_is_nan ? 0 : sign;
  const int exponent = std::max(std::ilogb(magnitude), smallest);
  const int top = (1 << format.exponent_bits) - 2;
  if (exponent + format.bias > top) return sign | static_cast<std::uint64_t>(top) << format.fraction_bits;
  const auto scaled = static_cast<std::uint64_t>(std::ldexp(magnitude, format.fraction_bits - exponent));
  if (scaled == 0 && format.specials == Definition::Specials::minus_zero_is_nan) return 0;
  // With the implicit one this carries into the exponent field.
  return sign | ((static_cast<std::uint64_t>(exponent + format.bias - 1) << format.fraction_bits) + scaled);
}

struct Kind {
  const char* name;
  std::function<std::uint64_t(const Definition&, std::mt19937_64&)> draw;
};

std::uint64_t random_bits(const Definition& format, std::mt19937_64& random) {
  return random() >> (64 - 8 * format.bytes);
}

double normal(std::mt19937_64& random) {
  return std::normal_distribution<double>()(random);
}

std::vector<Kind> kinds() {
  const auto infinity = [](const Definition& format) {
    return ((std::uint64_t{1} << format.exponent_bits) - 1) << format.fraction_bits;
  };
  const auto sign = [](const Definition& format) {
    return std::uint64_t{1} << (format.exponent_bits + format.fraction_bits);
  };
  return {
      {"random bits", random_bits},
      {"zeros", [](const Definition&, std::mt19937_64&) { return std::uint64_t{0}; }},
      {"minus zeros", [=](const Definition& f, std::mt19937_64&) { return sign(f); }},
      {"constant", [](const Definition& f, std::mt19937_64&) { return encode(f, -0.75); }},
      {"normal", [](const Definition& f, std::mt19937_64& r) { return encode(f, normal(r)); }},
      {"positive", [](const Definition& f, std::mt19937_64& r) { return encode(f, std::fabs(normal(r)) + 0.01); }},
      {"negative", [](const Definition& f, std::mt19937_64& r) { return encode(f, -std::fabs(normal(r)) - 0.01); }},
      {"rectified", [](const Definition& f, std::mt19937_64& r) { return encode(f, std::fmax(normal(r), 0)); }},
      {"gradients", [](const Definition& f, std::mt19937_64& r) { return encode(f, 1e-6 * normal(r)); }},
      {"skewed",
       [](const Definition& f, std::mt19937_64& r) { return encode(f, r() % 1000 == 0 ? normal(r) * 1e4 : 1.5); }},
      {"wide",
       [](const Definition& f, std::mt19937_64& r) { return encode(f, normal(r) * std::exp2(12 * normal(r))); }},
      {"very wide",
       [](const Definition& f, std::mt19937_64& r) { return encode(f, normal(r) * std::exp2(60 * normal(r))); }},
      {"subnormal",
       [](const Definition& f, std::mt19937_64& r) {
         return random_bits(f, r) & ~(((std::uint64_t{1} << f.exponent_bits) - 1) << f.fraction_bits);
       }},
      {"infinities",
       [=](const Definition& f, std::mt19937_64& r) { return infinity(f) | (r() % 2 == 0 ? sign(f) : 0); }},
      {"NaN",
       [=](const Definition& f, std::mt19937_64& r) {
         return infinity(f) | (random_bits(f, r) & ((std::uint64_t{1} << f.fraction_bits) - 1)) | 1;
       }},
      {"rarely not finite",
       [=](const Definition& f, std::mt19937_64& r) {
         return r() % 500 == 0 ? infinity(f) | r() % 3 : encode(f, normal(r));
       }},
      {"scale jumps",
       [](const Definition& f, std::mt19937_64& r) {
         static thread_local int drawn = 0;
         return encode(f, normal(r) * std::exp2(++drawn / 6000 % 7 * 25 - 80));
       }},
  };
}

std::vector<unsigned char> draw(const Definition& format, const Kind& kind, std::int64_t count, std::size_t offset,
                                std::mt19937_64& random) {
  std::vector<unsigned char> memory(offset + static_cast<std::size_t>(count * format.bytes));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = kind.draw(format, random);
    std::memcpy(memory.data() + offset + i * format.bytes, &bits, static_cast<std::size_t>(format.bytes));
  }
  return memory;
}

class Path : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    path = find_path(GetParam());
    if (path == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  const KernelPath* path = nullptr;
};

TEST_P(Path, AllShortLengths) {
  std::mt19937_64 random(11);
  const std::vector<Kind> all = kinds();
  for (const Definition& format : definitions()) {
    for (std::int64_t count = 0; count <= 300; ++count) {
      const Kind& kind = all[static_cast<std::size_t>(count) % all.size()];
      const auto bits = draw(format, all.front(), count, 0, random);
      expect_exact(*path, format, bits.data(), count);
      const auto other = draw(format, kind, count, 0, random);
      expect_exact(*path, format, other.data(), count);
    }
  }
}

TEST_P(Path, AllAlignments) {
  std::mt19937_64 random(12);
  const std::vector<Kind> all = kinds();
  for (const Definition& format : definitions()) {
    for (std::size_t offset = 0; offset < 64; ++offset) {
      const auto memory = draw(format, all[offset % all.size()], 1500, offset, random);
      expect_exact(*path, format, memory.data() + offset, 1500);
    }
  }
}

TEST_P(Path, AllKindsOfData) {
  std::mt19937_64 random(13);
  for (const Definition& format : definitions()) {
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(kind.name);
      for (const std::int64_t count : {1, 31, 511, 1000, 4096, 4097, 20011}) {
        const auto memory = draw(format, kind, count, 0, random);
        expect_exact(*path, format, memory.data(), count);
      }
    }
  }
}

// Blocks of different kinds one after the other: each change leaves the common case and comes back.
TEST_P(Path, ChangingData) {
  std::mt19937_64 random(14);
  const std::vector<Kind> all = kinds();
  for (const Definition& format : definitions()) {
    std::vector<unsigned char> memory;
    for (int i = 0; i < 60; ++i) {
      const auto piece =
          draw(format, all[random() % all.size()], static_cast<std::int64_t>(random() % 6000), 0, random);
      memory.insert(memory.end(), piece.begin(), piece.end());
    }
    expect_exact(*path, format, memory.data(), static_cast<std::int64_t>(memory.size()) / format.bytes);
  }
}

TEST_P(Path, AddsToWhatIsThere) {
  std::mt19937_64 random(15);
  for (const Definition& format : definitions()) {
    const auto memory = draw(format, kinds().front(), 5000, 0, random);
    FlatStats stats;
    accumulate(*path, dense(format.dtype, memory.data(), 2000), stats);
    accumulate(*path, dense(format.dtype, memory.data() + 2000 * format.bytes, 3000), stats);
    EXPECT_THAT(difference(reference_stats(format, memory.data(), 5000), stats), IsEmpty()) << format.name;
  }
}

// More than 2^16 blocks, so that every digit of the counters carries: a row repeated by a stride of 0.
TEST_P(Path, VeryManyElements) {
  std::mt19937_64 random(16);
  const std::int64_t row = 4096;
  const std::int64_t rows = std::string(GetParam()) == "scalar" ? 300 : 70001;
  for (const trace::DType dtype : {trace::DType::float16, trace::DType::bfloat16}) {
    const Definition& format = definition(dtype);
    for (const Kind& kind : kinds()) {
      if (std::string(kind.name) != "normal" && std::string(kind.name) != "constant") continue;
      const auto memory = draw(format, kind, row, 0, random);
      TensorView view = dense(dtype, memory.data(), row * rows);
      view.contiguous = false;
      view.dims = 2;
      view.sizes = {rows, row};
      view.strides = {0, 1};
      FlatStats stats;
      accumulate(*path, view, stats);
      trace::TensorStats expected = reference_stats(format, memory.data(), row);
      const auto times = static_cast<std::uint64_t>(rows);
      expected.count *= times;
      expected.zero *= times;
      expected.subnormal *= times;
      expected.sum_squares *= static_cast<double>(times);
      for (std::uint64_t& count : expected.exponents.counts)
        count *= times;
      EXPECT_THAT(difference(expected, stats), IsEmpty()) << format.name << " " << kind.name;
    }
  }
}

#if defined(__x86_64__)
// torch.set_flush_denormal(True) sets these two bits for the whole thread.
TEST_P(Path, SubnormalsFlushedByTheProgram) {
  std::mt19937_64 random(17);
  for (const Definition& format : definitions()) {
    for (const Kind& kind : kinds()) {
      const auto memory = draw(format, kind, 5003, 0, random);
      const TensorView view = dense(format.dtype, memory.data(), 5003);
      FlatStats stats;
      FlatStats merged;
      const unsigned before = _mm_getcsr();
      _mm_setcsr(before | 0x8040U);
      accumulate(*path, view, stats);
      merge(merged, stats);
      const Sentinel sentinel = check_nonfinite(*path, view);
      const NonfiniteCount nonfinite = count_nonfinite(*path, view);
      const unsigned after = _mm_getcsr();
      _mm_setcsr(before);
      EXPECT_EQ(after & 0xffc0U, (before | 0x8040U) & 0xffc0U) << "the modes were changed";
      trace::TensorStats expected = reference_stats(format, memory.data(), 5003);
      // Floating-point arithmetic may take fp32's subnormals for zero here; their squares vanish beside 2^-240.
      if (std::fabs(expected.sum_squares - stats.sum_squares) < 0x1p-240) stats.sum_squares = expected.sum_squares;
      if (std::fabs(expected.sum_squares - merged.sum_squares) < 0x1p-240) merged.sum_squares = expected.sum_squares;
      EXPECT_THAT(difference(expected, stats), IsEmpty()) << format.name << " " << kind.name;
      EXPECT_THAT(difference(expected, merged), IsEmpty()) << format.name << " " << kind.name;
      std::vector<std::uint64_t> patterns;
      for (std::int64_t i = 0; i < 5003; ++i)
        patterns.push_back(pattern(format, memory.data(), i));
      EXPECT_THAT(difference(reference_sentinel(format, patterns), sentinel), IsEmpty()) << format.name << kind.name;
      EXPECT_THAT(difference(expected, nonfinite), IsEmpty()) << format.name << kind.name;
    }
  }
}

// A program that hunts a NaN with feenableexcept must not die in the tool that hunts it too, nor find its flags set.
TEST_P(Path, RaisesNoFloatingPointException) {
  std::mt19937_64 random(18);
  for (const Definition& format : definitions()) {
    for (const Kind& kind : kinds()) {
      const auto memory = draw(format, kind, 5003, 0, random);
      const TensorView view = dense(format.dtype, memory.data(), 5003);
      FlatStats stats;
      FlatStats merged;
      std::feclearexcept(FE_ALL_EXCEPT);
      accumulate(*path, view, stats);
      merge(merged, stats);
      static_cast<void>(check_nonfinite(*path, view));
      static_cast<void>(count_nonfinite(*path, view));
      EXPECT_EQ(std::fetestexcept(FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_DIVBYZERO), 0)
          << format.name << " " << kind.name;
    }
  }
}
#endif

INSTANTIATE_TEST_SUITE_P(All, Path, ::testing::Values("scalar", "avx2", "avx512"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(PathChoice, UnknownNameIsNoPath) {
  EXPECT_EQ(find_path("sse9"), nullptr);
  EXPECT_EQ(find_path(""), nullptr);
}

TEST(PathChoice, BestOfThisMachine) {
  unsetenv("AMPSCOPE_KERNELS");
  EXPECT_STREQ(kernel_path(), path_names().front());
}

// The choice is made once in a process, so each of these is one of its own.
TEST(PathChoiceDeathTest, VariableAsksForLess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const char* name : path_names()) {
    EXPECT_EXIT(
        {
          setenv("AMPSCOPE_KERNELS", name, 1);
          std::exit(std::strcmp(kernel_path(), name) == 0 ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace ampscope::stats::testing
