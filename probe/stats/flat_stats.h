// Statistics of one tensor or of several, in one flat piece of memory: what a hook fills on a training thread.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "trace/tensor_stats.h"

namespace ampscope::stats {

/// trace::TensorStats without its vector. Nothing here allocates, throws or locks.
///
/// The object is large (16.5 KiB): keep it in a pool and reset() it. Resetting, merging and converting cost in
/// proportion to the exponents seen, usually a few tens.
struct FlatStats {
  static constexpr int lowest_exponent = -1074;  ///< of the smallest subnormal double
  static constexpr int highest_exponent = 1023;  ///< of the largest double
  static constexpr int exponents = highest_exponent - lowest_exponent + 1;

  std::uint64_t count = 0;  ///< all elements
  std::uint64_t nan = 0;
  std::uint64_t positive_infinity = 0;
  std::uint64_t negative_infinity = 0;
  std::uint64_t zero = 0;                                 ///< +0 and -0
  std::uint64_t subnormal = 0;                            ///< subnormal in the tensor's own dtype
  double min = std::numeric_limits<double>::infinity();   ///< smallest finite value (a zero is +0); +inf: none
  double max = -std::numeric_limits<double>::infinity();  ///< largest finite value (a zero is +0); -inf: none
  double absmax = 0;                                      ///< largest finite magnitude; 0: none
  /// Of the finite elements. Infinity as soon as an element's magnitude is 2^500 or more; elements below 2^-500 add
  /// nothing. (Squaring them would raise the overflow or underflow flag, which a program may have made a trap.)
  double sum_squares = 0;

  int lowest = highest_exponent + 1;     ///< smallest exponent that may have a count
  int highest = lowest_exponent - 1;     ///< largest one; less than `lowest`: none
  std::uint64_t counts[exponents] = {};  ///< by exponent, of the finite non-zero elements; zero outside the range

  /// How many finite non-zero elements v have 2^exponent <= |v| < 2^(exponent+1).
  [[nodiscard]] std::uint64_t at(int exponent) const noexcept {
    return exponent < lowest || exponent > highest ? 0 : counts[exponent - lowest_exponent];
  }
  [[nodiscard]] std::uint64_t nonfinite() const noexcept { return nan + positive_infinity + negative_infinity; }

  /// Adds to one count; `exponent` must lie in lowest_exponent..highest_exponent.
  void add(int exponent, std::uint64_t elements) noexcept;
  /// Widens min, max and absmax by finite values. Right for subnormals also when the thread treats them as zero.
  void include(double smallest, double largest) noexcept;
  /// Adds to sum_squares; never raises the overflow flag.
  void add_squares(double squares) noexcept;
  void reset() noexcept;
};
static_assert(std::is_trivially_copyable_v<FlatStats>);

/// Adds everything in `from` to `into`.
void merge(FlatStats& into, const FlatStats& from) noexcept;

/// Makes these the statistics of every element divided by 2^exponent, exactly. `smallest_normal`: exponent of the
/// smallest normal value of the tensor's dtype, which decides what counts as subnormal afterwards. False, and nothing
/// is changed, where an element would leave the range of a double.
[[nodiscard]] bool divide_by_power_of_two(FlatStats& stats, int exponent, int smallest_normal) noexcept;

/// For the trace. Allocates: not for a hook.
[[nodiscard]] trace::TensorStats to_tensor_stats(const FlatStats& stats);

}  // namespace ampscope::stats
