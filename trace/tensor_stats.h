// What is known of the values of one tensor, or of many merged: the unit of every numeric record of the trace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ampscope::trace {

/// Element types the statistics kernels know; the order is part of the trace format (values are stored).
enum class DType : std::uint8_t {
  unknown = 0,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3fn,
  float8_e5m2,
  float8_e4m3fnuz,
  float8_e5m2fnuz,
  boolean,
  uint8,
  int8,
  int16,
  int32,
  int64,
  complex64,
  complex128,
  other,
};

/// Limits of a floating type, as powers of two: a finite non-zero value v has the exponent e with 2^e <= |v| < 2^(e+1).
struct FloatLimits {
  int smallest_subnormal;  ///< exponent of the smallest positive value
  int smallest_normal;     ///< exponent of the smallest value with full precision
  int largest;             ///< exponent of the largest finite value
  double max;              ///< the largest finite value
  int significand_bits;    ///< with the implicit one: fp16 11, bf16 8, fp32 24
};

/// Limits of `dtype`; all zero for a type that is not a floating type.
[[nodiscard]] FloatLimits float_limits(DType dtype) noexcept;
[[nodiscard]] bool is_floating(DType dtype) noexcept;
/// fp16 and bf16: the types autocast casts down to.
[[nodiscard]] bool is_half(DType dtype) noexcept;
/// Bytes of one element; 0 for unknown and other.
[[nodiscard]] int element_size(DType dtype) noexcept;
/// "float16", "bfloat16", … as PyTorch spells them without the "torch." prefix.
[[nodiscard]] const char* dtype_name(DType dtype) noexcept;
/// "fp16", "bf16", "fp32", … as people write them.
[[nodiscard]] const char* short_dtype_name(DType dtype) noexcept;
/// The inverse of dtype_name; unknown for a name that is none.
[[nodiscard]] DType dtype_from_name(const char* name) noexcept;

/// How many finite non-zero values have each binary exponent; exact, sparse at the ends.
struct ExponentHistogram {
  int first = 0;  ///< exponent of counts[0]: counts[i] values v have 2^(first+i) <= |v| < 2^(first+i+1)
  std::vector<std::uint64_t> counts;  ///< no leading and no trailing zero count; empty when there is no such value

  [[nodiscard]] bool empty() const noexcept { return counts.empty(); }
  [[nodiscard]] int last() const noexcept { return first + static_cast<int>(counts.size()) - 1; }
  [[nodiscard]] std::uint64_t total() const noexcept;
  /// Number of values with an exponent strictly below `exponent`.
  [[nodiscard]] std::uint64_t below(int exponent) const noexcept;
  /// Number of values with an exponent of at least `exponent`.
  [[nodiscard]] std::uint64_t at_least(int exponent) const noexcept;
  void add(int exponent, std::uint64_t count);
  void merge(const ExponentHistogram& other);
  friend bool operator==(const ExponentHistogram&, const ExponentHistogram&) = default;
};

/// Exact statistics of the elements of a tensor. NaN and infinities are counted and take part in nothing else.
struct TensorStats {
  std::uint64_t count = 0;  ///< all elements
  std::uint64_t nan = 0;
  std::uint64_t positive_infinity = 0;
  std::uint64_t negative_infinity = 0;
  std::uint64_t zero = 0;                                 ///< +0 and -0
  std::uint64_t subnormal = 0;                            ///< subnormal in the tensor's own dtype
  double min = std::numeric_limits<double>::infinity();   ///< smallest finite value; +inf when there is none
  double max = -std::numeric_limits<double>::infinity();  ///< largest finite value; -inf when there is none
  double absmax = 0;                                      ///< largest finite magnitude; 0 when there is none
  double sum_squares = 0;       ///< of the finite elements, accumulated in double: sqrt of it is the norm
  ExponentHistogram exponents;  ///< of the finite non-zero elements

  [[nodiscard]] std::uint64_t infinite() const noexcept { return positive_infinity + negative_infinity; }
  [[nodiscard]] std::uint64_t nonfinite() const noexcept { return nan + infinite(); }
  [[nodiscard]] bool has_finite() const noexcept { return nonfinite() < count; }
  void merge(const TensorStats& other);
};

}  // namespace ampscope::trace
