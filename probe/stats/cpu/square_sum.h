// Sums of squares. Included only by the files that implement a kernel path, see vector_scan.h.
#pragma once

#include <cstddef>

namespace ampscope::stats {

/// A sum in double.
template <typename Simd>
class SquareSum {
 public:
  using Float = typename Simd::Float;
  using Double = typename Simd::Double;

  [[gnu::always_inline]] inline void reset() {
    set(Simd::zero_double(), Simd::zero_double(), Simd::zero_double(), Simd::zero_double());
  }
  [[gnu::always_inline]] inline double total() const {
    return Simd::sum_of_lanes(Simd::add(Simd::add(sums_[0], sums_[1]), Simd::add(sums_[2], sums_[3])));
  }

  /// Short chains of additions in float, for floats whose squares stay far inside the range of a float. At most eight
  /// squares meet in a lane before it goes to double, which costs a relative error of at most 2^-20 and saves most of
  /// the time.
  class InFloat {
   public:
    [[gnu::always_inline]] explicit inline InFloat(SquareSum& sum)
        : sum_(sum), low_(sum.sums_[0]), high_(sum.sums_[1]) {
      a_ = b_ = c_ = d_ = Simd::zero_float();
    }
    /// `i` (a constant where this is inlined) chooses one of four chains.
    [[gnu::always_inline]] inline void add(int i, Float value) {
      Float& chain = i % 4 == 0 ? a_ : i % 4 == 1 ? b_ : i % 4 == 2 ? c_ : d_;
      chain = Simd::multiply_add(value, value, chain);
    }
    /// To be called after at most 32 vectors.
    [[gnu::always_inline]] inline void to_double() {
      const Float all = Simd::add(Simd::add(a_, b_), Simd::add(c_, d_));
      low_ = Simd::add(low_, Simd::low_half_as_double(all));
      high_ = Simd::add(high_, Simd::high_half_as_double(all));
      a_ = b_ = c_ = d_ = Simd::zero_float();
    }
    [[gnu::always_inline]] inline void finish() {
      to_double();
      sum_.sums_[0] = low_;
      sum_.sums_[1] = high_;
    }

   private:
    SquareSum& sum_;
    Double low_;
    Double high_;
    Float a_;
    Float b_;
    Float c_;
    Float d_;
  };

  /// For any finite floats; `vectors` is even.
  template <typename Load>
  [[gnu::always_inline]] inline void add_floats(std::size_t vectors, const Load& load) {
    const auto plus_square = [](Double value, Double sum)
                                 __attribute__((always_inline)) { return Simd::multiply_add(value, value, sum); };
    Double a = sums_[0];
    Double b = sums_[1];
    Double c = sums_[2];
    Double d = sums_[3];
    for (std::size_t i = 0; i < vectors; i += 2) {
      const Float first = load(i);
      const Float second = load(i + 1);
      a = plus_square(Simd::low_half_as_double(first), a);
      b = plus_square(Simd::high_half_as_double(first), b);
      c = plus_square(Simd::low_half_as_double(second), c);
      d = plus_square(Simd::high_half_as_double(second), d);
    }
    set(a, b, c, d);
  }

  /// For doubles whose squares neither overflow nor underflow; `vectors` is a multiple of 4.
  template <typename Load>
  [[gnu::always_inline]] inline void add_doubles(std::size_t vectors, const Load& load) {
    const auto plus_square = [&](std::size_t i, Double sum) __attribute__((always_inline)) {
      const Double value = load(i);
      return Simd::multiply_add(value, value, sum);
    };
    Double a = sums_[0];
    Double b = sums_[1];
    Double c = sums_[2];
    Double d = sums_[3];
    for (std::size_t i = 0; i < vectors; i += 4) {
      a = plus_square(i, a);
      b = plus_square(i + 1, b);
      c = plus_square(i + 2, c);
      d = plus_square(i + 3, d);
    }
    set(a, b, c, d);
  }

 private:
  [[gnu::always_inline]] inline void set(Double a, Double b, Double c, Double d) {
    sums_[0] = a;
    sums_[1] = b;
    sums_[2] = c;
    sums_[3] = d;
  }

  Double sums_[4];
};

}  // namespace ampscope::stats
