// Counting without a table: how often is each bit position set in a long sequence of vectors?
//
// Every element becomes a lane with one bit set, at the position of its exponent. Sixteen such vectors go through a
// tree of full adders (each takes three vectors of weight 1 to one of weight 1 and one of weight 2), so that the counts
// build up in bit-sliced form: vector k holds binary digit k of the count of every position of every lane. Nothing is
// stored per element and the time does not depend on the data. The method is the positional population count of
// Klarqvist, Mula and Lemire ("Efficient Computation of Positional Population Counts Using SIMD Instructions", 2021).
//
// Included only by the files that implement a kernel path; Simd is a class of their own, see vector_scan.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ampscope::stats {

/// Counters of `lane_bits` (32 or 64) positions.
template <typename Simd, int lane_bits>
class BitCounter {
 public:
  using Vector = typename Simd::Vector;
  static constexpr int positions = lane_bits;
  static constexpr std::size_t vectors_per_chunk = 16;

  [[gnu::always_inline]] inline void reset() {
    for (int level = 0; level < first_folded; ++level)
      level_[level] = Simd::zero();
    levels_ = first_folded;
    waiting_ = 0;
  }

  /// Adds `chunks` times sixteen vectors: one_hot(chunk, i) for i in 0..15, in this order.
  template <typename OneHot>
  [[gnu::always_inline]] inline void add(std::size_t chunks, const OneHot& one_hot) {
    Vector ones = level_[0];
    Vector twos = level_[1];
    Vector fours = level_[2];
    Vector eights = level_[3];
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const Vector sixteens =
          tree(ones, twos, fours, eights, [&](int i) __attribute__((always_inline)) { return one_hot(chunk, i); });
      carried_[waiting_++] = sixteens;
      if (waiting_ == 16) fold();
    }
    level_[0] = ones;
    level_[1] = twos;
    level_[2] = fours;
    level_[3] = eights;
  }

  /// Calls sink(position, count) for every position that was ever set, and starts again.
  template <typename Sink>
  [[gnu::always_inline]] inline void flush(const Sink& sink) {
    for (int i = 0; i < waiting_; ++i)
      ripple(first_folded, carried_[i]);
    Vector any = level_[0];
    for (int level = 1; level < levels_; ++level)
      any = Simd::bit_or(any, level_[level]);
    for (std::uint64_t seen = Simd::template or_of_lanes<lane_bits>(any); seen != 0; seen &= seen - 1) {
      const int position = __builtin_ctzll(seen);
      std::uint64_t count = 0;
      for (int level = 0; level < levels_; ++level) {
        count += static_cast<std::uint64_t>(Simd::template lanes_with_bit<lane_bits>(level_[level], position)) << level;
      }
      sink(position, count);
    }
    reset();
  }

 private:
  // 2^44 vectors: more than any memory holds.
  static constexpr int max_levels = 44;
  static constexpr int first_folded = 4;

  [[gnu::always_inline]] static inline Vector add_pair(Vector& sum, Vector a, Vector b) {
    Vector carry;
    Simd::full_adder(sum, a, b, carry);
    return carry;
  }

  // Adds in(0) … in(15) to the four digits and gives back the carry, of weight 16.
  template <typename In>
  [[gnu::always_inline]] static inline Vector tree(Vector& ones, Vector& twos, Vector& fours, Vector& eights,
                                                   const In& in) {
    const auto two_eighths = [&](int first) __attribute__((always_inline)) {
      const Vector low = add_pair(ones, in(first), in(first + 1));
      const Vector high = add_pair(ones, in(first + 2), in(first + 3));
      return add_pair(twos, low, high);
    };
    const Vector fours_a = two_eighths(0);
    const Vector fours_b = two_eighths(4);
    const Vector eights_a = add_pair(fours, fours_a, fours_b);
    const Vector fours_c = two_eighths(8);
    const Vector fours_d = two_eighths(12);
    const Vector eights_b = add_pair(fours, fours_c, fours_d);
    return add_pair(eights, eights_a, eights_b);
  }

  // Sixteen waiting carries become one of weight 256.
  void fold() {
    for (; levels_ < 2 * first_folded; ++levels_)
      level_[levels_] = Simd::zero();
    const Vector carry = tree(level_[4], level_[5], level_[6], level_[7],
                              [&](int i) __attribute__((always_inline)) { return carried_[i]; });
    waiting_ = 0;
    ripple(2 * first_folded, carry);
  }

  void ripple(int level, Vector carry) {
    for (; level < levels_; ++level) {
      const Vector next = Simd::bit_and(level_[level], carry);
      level_[level] = Simd::bit_xor(level_[level], carry);
      if (Simd::is_zero(next)) return;
      carry = next;
    }
    level_[levels_++] = carry;
  }

  Vector level_[max_levels];
  Vector carried_[16];
  int levels_;
  int waiting_;
};

}  // namespace ampscope::stats
