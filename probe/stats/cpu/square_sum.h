// Sum of squares of a block. Included only by the files that implement a kernel path, see vector_scan.h.
#pragma once

#include <cstddef>

namespace ampscope::stats {

/// Sums in double. Squares of the half types are exact in float; of these, at most eight are added in float before they
/// go to double, which costs a relative error of at most 2^-21 and saves two thirds of the time.
template <typename Simd>
class SquareSum {
 public:
  using Float = typename Simd::Float;
  using Double = typename Simd::Double;
  static constexpr std::size_t vector_bytes = sizeof(Float);

  [[gnu::always_inline]] inline void reset() {
    for (Double& sum : sums_)
      sum = Simd::zero_double();
  }
  [[gnu::always_inline]] inline double total() const {
    return Simd::sum_of_lanes(Simd::add(Simd::add(sums_[0], sums_[1]), Simd::add(sums_[2], sums_[3])));
  }

  /// load(i) gives vector i of `vectors` (a multiple of 16) as floats whose squares neither overflow nor underflow.
  template <typename Load>
  [[gnu::always_inline]] inline void add_in_float(std::size_t vectors, const Load& load) {
    Double low = sums_[0];
    Double high = sums_[1];
    for (std::size_t i = 0; i < vectors; i += 8) {
      Float sum[4];
      for (std::size_t k = 0; k < 4; ++k) {
        const Float value = load(i + k);
        sum[k] = Simd::multiply(value, value);
      }
      for (std::size_t k = 0; k < 4; ++k) {
        const Float value = load(i + 4 + k);
        sum[k] = Simd::multiply_add(value, value, sum[k]);
      }
      const Float all = Simd::add(Simd::add(sum[0], sum[1]), Simd::add(sum[2], sum[3]));
      low = Simd::add(low, Simd::low_half_as_double(all));
      high = Simd::add(high, Simd::high_half_as_double(all));
    }
    sums_[0] = low;
    sums_[1] = high;
  }

  /// The same for any finite floats.
  template <typename Load>
  [[gnu::always_inline]] inline void add_floats(std::size_t vectors, const Load& load) {
    Double sum[4] = {sums_[0], sums_[1], sums_[2], sums_[3]};
    for (std::size_t i = 0; i < vectors; i += 2) {
      for (std::size_t k = 0; k < 2; ++k) {
        const Float value = load(i + k);
        const Double low = Simd::low_half_as_double(value);
        const Double high = Simd::high_half_as_double(value);
        sum[2 * k] = Simd::multiply_add(low, low, sum[2 * k]);
        sum[2 * k + 1] = Simd::multiply_add(high, high, sum[2 * k + 1]);
      }
    }
    for (std::size_t k = 0; k < 4; ++k)
      sums_[k] = sum[k];
  }

  /// For doubles whose squares neither overflow nor underflow; `vectors` is a multiple of 4.
  template <typename Load>
  [[gnu::always_inline]] inline void add_doubles(std::size_t vectors, const Load& load) {
    Double sum[4] = {sums_[0], sums_[1], sums_[2], sums_[3]};
    for (std::size_t i = 0; i < vectors; i += 4) {
      for (std::size_t k = 0; k < 4; ++k) {
        const Double value = load(i + k);
        sum[k] = Simd::multiply_add(value, value, sum[k]);
      }
    }
    for (std::size_t k = 0; k < 4; ++k)
      sums_[k] = sum[k];
  }

 private:
  Double sums_[4];
};

}  // namespace ampscope::stats
