// The first loop over a block: between which magnitudes do its elements lie, how many are zero?
// Included only by the files that implement a kernel path, see vector_scan.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/stats/cpu/formats.h"

namespace ampscope::stats {

/// The range of all lanes together, as magnitudes.
template <typename Layout>
struct Range {
  using Bits = typename Layout::Bits;
  Bits largest_positive = 0;  ///< 0: no positive element
  Bits largest_negative = 0;  ///< 0: no negative element
  Bits smallest = 0;          ///< of the non-zero elements; 0: there is none, or it was not looked for

  [[gnu::always_inline]] inline Bits largest() const {
    return largest_positive > largest_negative ? largest_positive : largest_negative;
  }
};

/// The range of the elements that went through each lane.
template <typename Simd, typename Layout>
struct LaneRange {
  using Vector = typename Simd::Vector;
  using Bits = typename Layout::Bits;
  static constexpr int width = sizeof(Bits);
  static constexpr std::size_t vector_bytes = sizeof(Vector);

  // As signed integers the positive values are in order, and above all negative ones; as unsigned integers the negative
  // values are in order of magnitude, and above all positive ones.
  Vector largest_signed;
  Vector largest_unsigned;
  // Twice the magnitude minus one: a zero wraps round and counts as the largest.
  Vector smallest;

  [[gnu::always_inline]] inline void reset() {
    largest_signed = Simd::template broadcast<width>(Layout::sign_bit);
    largest_unsigned = Simd::zero();
    smallest = Simd::ones();
  }

  [[gnu::always_inline]] inline void add(const LaneRange& other) {
    largest_signed = Simd::template max_signed<width>(largest_signed, other.largest_signed);
    largest_unsigned = Simd::template max_unsigned<width>(largest_unsigned, other.largest_unsigned);
    smallest = Simd::template min_unsigned<width>(smallest, other.smallest);
  }

  // What to look for besides the largest values.
  static constexpr unsigned zeros = 1;
  static constexpr unsigned smallest_magnitude = 2;

  /// Of a block of a multiple of four vectors; `zero_count` is set when zeros are looked for.
  template <unsigned wanted>
  [[gnu::always_inline]] static inline LaneRange of(const unsigned char* block, std::size_t bytes,
                                                    std::uint64_t& zero_count) {
    return look_at(block, bytes, zero_count,
                   [](LaneRange& range, Vector bits, Zeros& counter) __attribute__((always_inline)) {
                     range.look_for_largest(bits);
                     if constexpr ((wanted & smallest_magnitude) != 0) range.look_for_smallest(bits);
                     if constexpr ((wanted & zeros) != 0) counter.add(bits, magnitude_mask());
                   });
  }

  /// The same as of<zeros | smallest_magnitude>(), quicker when there are no zeros and slower when there are.
  [[gnu::always_inline]] static inline LaneRange of_non_zero(const unsigned char* block, std::size_t bytes,
                                                             std::uint64_t& zero_count) {
    LaneRange all =
        look_at(block, bytes, zero_count, [](LaneRange& range, Vector bits, Zeros&) __attribute__((always_inline)) {
          range.look_for_largest(bits);
          range.smallest = Simd::template min_unsigned<width>(range.smallest, Simd::template add<width>(bits, bits));
        });
    if (!Simd::template any_zero<width>(all.smallest)) [[likely]] {
      all.smallest = Simd::template add<width>(all.smallest, Simd::ones());
      return all;
    }
    const LaneRange others = look_at(block, bytes, zero_count,
                                     [](LaneRange& range, Vector bits, Zeros& counter) __attribute__((always_inline)) {
                                       range.look_for_smallest(bits);
                                       counter.add(bits, magnitude_mask());
                                     });
    all.smallest = others.smallest;
    return all;
  }

  [[gnu::always_inline]] static inline Vector smallest_of(const unsigned char* block, std::size_t bytes) {
    std::uint64_t ignored = 0;
    return look_at(block, bytes, ignored,
                   [](LaneRange& range, Vector bits, Zeros&)
                       __attribute__((always_inline)) { range.look_for_smallest(bits); })
        .smallest;
  }

  [[gnu::always_inline]] inline bool any_above(Bits magnitude) const {
    return Simd::template any_greater_signed<width>(largest_signed, Simd::template broadcast<width>(magnitude)) ||
           Simd::template any_greater_unsigned<width>(
               largest_unsigned, Simd::template broadcast<width>(static_cast<Bits>(magnitude | Layout::sign_bit)));
  }
  /// Is a non-zero magnitude below this (non-zero) one?
  [[gnu::always_inline]] inline bool any_below(Bits magnitude) const {
    return Simd::template any_greater_unsigned<width>(
        Simd::template broadcast<width>(static_cast<Bits>(2 * magnitude - 1)), smallest);
  }
  [[gnu::always_inline]] inline bool any_positive() const {
    return Simd::template any_greater_signed<width>(largest_signed, Simd::zero());
  }
  [[gnu::always_inline]] inline bool any_negative() const {
    return Simd::template any_greater_unsigned<width>(largest_unsigned,
                                                      Simd::template broadcast<width>(Layout::sign_bit));
  }

  [[gnu::always_inline]] inline Range<Layout> reduce() const {
    Range<Layout> range;
    const auto top_signed = static_cast<Bits>(Simd::template reduce_max_signed<width>(largest_signed));
    const auto top_unsigned = static_cast<Bits>(Simd::template reduce_max_unsigned<width>(largest_unsigned));
    const auto nearest = static_cast<Bits>(Simd::template reduce_min_unsigned<width>(smallest));
    if (!Layout::negative(top_signed)) range.largest_positive = top_signed;
    if (Layout::negative(top_unsigned)) range.largest_negative = Layout::magnitude(top_unsigned);
    if (nearest != static_cast<Bits>(~Bits{0})) range.smallest = static_cast<Bits>((nearest >> 1) + 1);
    return range;
  }

 private:
  using Zeros = typename Simd::template ZeroCounter<width>;

  [[gnu::always_inline]] static inline Vector magnitude_mask() {
    return Simd::template broadcast<width>(Layout::magnitude_mask);
  }

  // Two chains, so that one does not wait for the other.
  template <typename Look>
  [[gnu::always_inline]] static inline LaneRange look_at(const unsigned char* block, std::size_t bytes,
                                                         std::uint64_t& zero_count, const Look& look) {
    LaneRange even;
    LaneRange odd;
    even.reset();
    odd.reset();
    Zeros counter;
    for (std::size_t at = 0; at < bytes; at += 4 * vector_bytes) {
      look(even, Simd::load(block + at), counter);
      look(odd, Simd::load(block + at + vector_bytes), counter);
      look(even, Simd::load(block + at + 2 * vector_bytes), counter);
      look(odd, Simd::load(block + at + 3 * vector_bytes), counter);
    }
    zero_count = counter.total();
    even.add(odd);
    return even;
  }

  [[gnu::always_inline]] inline void look_for_largest(Vector bits) {
    largest_signed = Simd::template max_signed<width>(largest_signed, bits);
    largest_unsigned = Simd::template max_unsigned<width>(largest_unsigned, bits);
  }
  [[gnu::always_inline]] inline void look_for_smallest(Vector bits) {
    const Vector doubled = Simd::template add<width>(bits, bits);
    smallest = Simd::template min_unsigned<width>(smallest, Simd::template add<width>(doubled, Simd::ones()));
  }
};

}  // namespace ampscope::stats
