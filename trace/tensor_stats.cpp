#include "trace/tensor_stats.h"

#include <array>
#include <cstring>
#include <numeric>

namespace ampscope::trace {

namespace {

struct TypeFacts {
  const char* name;
  const char* short_name;
  int size;
  FloatLimits limits;
};

// Indexed by DType. The limits follow from each format's bias and mantissa width: IEEE 754 for fp16, fp32 and fp64;
// bfloat16 is the upper half of fp32; the OCP "8-bit Floating Point Specification" for e4m3fn (bias 7, no infinity,
// 0x7f is NaN, so the largest value has mantissa 110) and e5m2 (bias 15, IEEE-like); arXiv:2206.02915 for the fnuz
// types (biases 8 and 16, neither infinity nor -0, 0x80 is NaN, so the top exponent holds ordinary values).
constexpr std::array<TypeFacts, 18> type_facts = {{
    {"unknown", "unknown", 0, {}},
    {"float16", "fp16", 2, {-24, -14, 15, 65504.0, 11}},
    {"bfloat16", "bf16", 2, {-133, -126, 127, 0x1.fep127, 8}},
    {"float32", "fp32", 4, {-149, -126, 127, 0x1.fffffep127, 24}},
    {"float64", "fp64", 8, {-1074, -1022, 1023, 0x1.fffffffffffffp1023, 53}},
    {"float8_e4m3fn", "fp8_e4m3fn", 1, {-9, -6, 8, 448.0, 4}},
    {"float8_e5m2", "fp8_e5m2", 1, {-16, -14, 15, 57344.0, 3}},
    {"float8_e4m3fnuz", "fp8_e4m3fnuz", 1, {-10, -7, 7, 240.0, 4}},
    {"float8_e5m2fnuz", "fp8_e5m2fnuz", 1, {-17, -15, 15, 57344.0, 3}},
    {"bool", "bool", 1, {}},
    {"uint8", "uint8", 1, {}},
    {"int8", "int8", 1, {}},
    {"int16", "int16", 2, {}},
    {"int32", "int32", 4, {}},
    {"int64", "int64", 8, {}},
    {"complex64", "complex64", 8, {}},
    {"complex128", "complex128", 16, {}},
    {"other", "other", 0, {}},
}};
static_assert(type_facts.size() == static_cast<std::size_t>(DType::other) + 1);

const TypeFacts& facts(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return index < type_facts.size() ? type_facts[index] : type_facts[0];
}

}  // namespace

FloatLimits float_limits(DType dtype) noexcept {
  return facts(dtype).limits;
}

bool is_floating(DType dtype) noexcept {
  return facts(dtype).limits.significand_bits != 0;
}

bool is_half(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16;
}

int element_size(DType dtype) noexcept {
  return facts(dtype).size;
}

const char* dtype_name(DType dtype) noexcept {
  return facts(dtype).name;
}

const char* short_dtype_name(DType dtype) noexcept {
  return facts(dtype).short_name;
}

DType dtype_from_name(const char* name) noexcept {
  if (name == nullptr) return DType::unknown;
  for (std::size_t i = 0; i < type_facts.size(); ++i) {
    if (std::strcmp(type_facts[i].name, name) == 0) return static_cast<DType>(i);
  }
  return DType::unknown;
}

std::uint64_t ExponentHistogram::total() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

std::uint64_t ExponentHistogram::below(int exponent) const noexcept {
  const auto end = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(exponent) - first, 0, std::ssize(counts));
  return std::accumulate(counts.begin(), counts.begin() + end, std::uint64_t{0});
}

std::uint64_t ExponentHistogram::at_least(int exponent) const noexcept {
  const auto begin = std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(exponent) - first, 0, std::ssize(counts));
  return std::accumulate(counts.begin() + begin, counts.end(), std::uint64_t{0});
}

void ExponentHistogram::add(int exponent, std::uint64_t count) {
  if (count == 0) return;
  if (counts.empty()) {
    first = exponent;
    counts.push_back(count);
    return;
  }
  if (exponent < first) {
    counts.insert(counts.begin(), static_cast<std::size_t>(first - exponent), 0);
    first = exponent;
  } else if (exponent > last()) {
    counts.resize(static_cast<std::size_t>(exponent - first) + 1);
  }
  counts[static_cast<std::size_t>(exponent - first)] += count;
}

void ExponentHistogram::merge(const ExponentHistogram& other) {
  if (other.empty()) return;
  // Widened once, before anything is added; `other` may be *this, which is never widened.
  const int other_first = other.first;
  const int other_last = other.last();
  if (empty() || other_first < first || other_last > last()) {
    ExponentHistogram wider;
    wider.first = empty() ? other_first : std::min(first, other_first);
    const int wider_last = empty() ? other_last : std::max(last(), other_last);
    wider.counts.resize(static_cast<std::size_t>(wider_last - wider.first) + 1);
    std::copy(counts.begin(), counts.end(), wider.counts.begin() + (empty() ? 0 : first - wider.first));
    *this = std::move(wider);
  }
  const auto offset = static_cast<std::size_t>(other_first - first);
  for (std::size_t i = 0; i < other.counts.size(); ++i)
    counts[offset + i] += other.counts[i];
}

void TensorStats::merge(const TensorStats& other) {
  count += other.count;
  nan += other.nan;
  positive_infinity += other.positive_infinity;
  negative_infinity += other.negative_infinity;
  zero += other.zero;
  subnormal += other.subnormal;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  absmax = std::max(absmax, other.absmax);
  sum_squares += other.sum_squares;
  exponents.merge(other.exponents);
}

}  // namespace ampscope::trace
