// The scan that the AVX2 and the AVX-512 path share. Simd stands for the instructions: a class in an unnamed namespace
// of the file that includes this one, so that every instantiation stays inside that file.
//
// Memory is read once, in blocks that stay in the first-level cache while two short loops look at them:
//   1. the range: largest values of both signs, smallest non-zero magnitude, zeros (LaneRange);
//   2. a one-hot lane for each element, at its exponent modulo 32 (or 64), counted by BitCounter; and the squares.
// The range says whether the exponents of the block are unique modulo 32: they nearly always are. A block that has
// infinities, NaN, subnormals or too wide a range is found by its range and goes another, exact way.
//
// All types but fp64 are looked at as fp32 in the second loop. fp16 gains by it that its subnormals are normal numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "probe/stats/cpu/bit_counter.h"
#include "probe/stats/cpu/formats.h"
#include "probe/stats/cpu/kernel_paths.h"
#include "probe/stats/cpu/lane_range.h"
#include "probe/stats/cpu/square_sum.h"

namespace ampscope::stats {

/// The processor fetches what comes next on its own; prefetch instructions only made it slower, and so did larger
/// blocks, during whose second loop nothing is asked of memory.
inline constexpr std::size_t block_bytes = 4096;

/// For the formats that have infinities.
template <typename Simd, typename Layout>
[[gnu::always_inline]] inline void count_specials(typename Simd::Vector bits, NonfiniteCount& special) {
  constexpr int width = sizeof(typename Layout::Bits);
  const auto infinity = Simd::template broadcast<width>(Layout::first_special);
  const auto minus_infinity = Simd::template broadcast<width>(Layout::first_special | Layout::sign_bit);
  const auto magnitude = Simd::bit_and(bits, Simd::template broadcast<width>(Layout::magnitude_mask));
  const auto lanes = [](std::uint64_t mask) { return static_cast<std::uint64_t>(__builtin_popcountll(mask)); };
  special.nan += lanes(Simd::template greater_unsigned<width>(magnitude, infinity));
  special.positive_infinity += lanes(Simd::template equal<width>(bits, infinity));
  special.negative_infinity += lanes(Simd::template equal<width>(bits, minus_infinity));
}

/// Statistics of many blocks of one format; accumulates into `into` when finished.
template <typename Simd, typename Layout>
class Scan {
 public:
  using Bits = typename Layout::Bits;
  using Vector = typename Simd::Vector;
  static constexpr std::size_t vector_bytes = sizeof(Vector);
  static constexpr std::size_t chunk_bytes = 16 * vector_bytes;

  explicit Scan(FlatStats& into) : into_(into) {
    total_.reset();
    squares_.reset();
    if constexpr (is_float16) {
      low_.first = lowest_float16;
      high_.first = highest_float16 - 31;
      wide_.first = lowest_float16;
    }
  }

  void add(const unsigned char* data, std::size_t elements) {
    into_.count += elements;
    const std::size_t bytes = elements * sizeof(Bits);
    const std::size_t whole = bytes / chunk_bytes * chunk_bytes;
    for (std::size_t at = 0; at < whole; at += block_bytes) {
      add_block(data + at, whole - at < block_bytes ? whole - at : block_bytes, 0);
    }
    if (whole < bytes) {
      alignas(64) unsigned char rest[chunk_bytes];
      std::memcpy(rest, data + whole, bytes - whole);
      std::memset(rest + (bytes - whole), 0, chunk_bytes - (bytes - whole));
      add_block(rest, chunk_bytes, (chunk_bytes - (bytes - whole)) / sizeof(Bits));
    }
  }

  void finish() {
    flush(low_);
    flush(high_);
    flush(wide_);
    into_.zero += zeros_;
    into_.add_squares(squares_.total());
    const Range<Layout> range = total_.reduce();
    if (zeros_ == 0 && range.largest() == 0) return;  // nothing finite
    const auto minus = [](Bits magnitude) { return magnitude == 0 ? 0 : -Layout::value(magnitude); };
    // Of one sign only: the other end is a zero or the smallest magnitude.
    const Bits nearest_zero = zeros_ != 0 ? Bits{0} : range.smallest;
    into_.include(range.largest_negative != 0 ? minus(range.largest_negative) : Layout::value(nearest_zero),
                  range.largest_positive != 0 ? Layout::value(range.largest_positive) : minus(nearest_zero));
  }

 private:
  using Lanes = LaneRange<Simd, Layout>;
  static constexpr int width = sizeof(Bits);
  static constexpr bool is_float16 = Layout::fraction_bits == 10;
  static constexpr bool is_float64 = width == 8;
  // All exponents of fp16 fit into one window of 64 and nearly all into one of 32: the smallest is rarely asked for.
  static constexpr unsigned wanted = is_float16 ? Lanes::zeros : Lanes::zeros | Lanes::smallest_magnitude;
  // Exponent fields are those of the type that the second loop looks at.
  static constexpr int bias = is_float64 ? 1023 : 127;
  static constexpr int lowest_float16 = bias - 24;
  static constexpr int highest_float16 = bias + 15;
  static constexpr Bits below_2_to_8 = ((8 + 15) << 10) - 1;
  static constexpr Bits two_to_minus_16 = 1 << 8;  // a subnormal

  /// A counter whose positions stand for the exponent fields first..first + positions - 1, modulo positions.
  template <int lane_bits>
  struct Window {
    static constexpr int positions = lane_bits;
    int first = 0;            // 0: not in use. Field 0, zeros and subnormals, is never inside
    bool counted = false;     // there is something in the counter (which is uninitialised before)
    std::uint64_t zeros = 0;  // what was counted at position 0 and has no exponent
    BitCounter<Simd, lane_bits> counter;

    [[gnu::always_inline]] inline bool holds(const Lanes& range) const {
      if (first == 0) return false;
      const int end = first + positions;
      const Bits upper = end >= Layout::exponent_fields - 1
                             ? Layout::largest_finite
                             : static_cast<Bits>((static_cast<std::uint64_t>(end) << Layout::fraction_bits) - 1);
      return !range.any_above(upper) &&
             !range.any_below(static_cast<Bits>(static_cast<std::uint64_t>(first) << Layout::fraction_bits));
    }
  };

  using Low = Window<is_float64 ? 64 : 32>;

  void add_block(const unsigned char* block, std::size_t bytes, std::size_t padding) {
    std::uint64_t block_zeros = 0;
    const Lanes range = range_of(block, bytes, padding, block_zeros);
    if constexpr (is_float16) {
      if (both_signs_ && !range.any_above(below_2_to_8)) [[likely]] {
        include(range, block_zeros - padding);
        count(low_, block, bytes, block_zeros);
      } else if (!range.any_above(Layout::largest_finite)) {
        add_finite_float16(block, bytes, range, block_zeros, padding);
      } else {
        add_without_specials(block, bytes, padding);
      }
    } else if (low_.holds(range)) {
      include(range, block_zeros - padding);
      count(low_, block, bytes, block_zeros);
    } else if (wide_.holds(range)) {
      include(range, block_zeros - padding);
      count(wide_, block, bytes, block_zeros);
    } else if (range.any_above(Layout::largest_finite)) {
      add_without_specials(block, bytes, padding);
    } else {
      add_finite(block, bytes, range, block_zeros, block_zeros - padding);
    }
  }

  // Data without zeros mostly stays without them.
  [[gnu::always_inline]] inline Lanes range_of(const unsigned char* block, std::size_t bytes, std::size_t padding,
                                               std::uint64_t& block_zeros) {
    if constexpr (is_float16) return Lanes::template of<wanted>(block, bytes, block_zeros);
    const Lanes range = had_zeros_ || padding != 0 ? Lanes::template of<wanted>(block, bytes, block_zeros)
                                                   : Lanes::of_non_zero(block, bytes, block_zeros);
    had_zeros_ = block_zeros != 0;
    return range;
  }

  [[gnu::always_inline]] inline void include(const Lanes& range, std::uint64_t real_zeros) {
    total_.add(range);
    zeros_ += real_zeros;
  }

  // ---- the second loop

  /// Vector i of the block, as floats.
  [[gnu::always_inline]] static inline typename Simd::Float floats(const unsigned char* block, std::size_t i) {
    if constexpr (is_float16) return Simd::float16_as_float(block + i * (vector_bytes / 2));
    if constexpr (width == 4) return Simd::load_floats(block + i * vector_bytes);
    const Vector both = Simd::load(block + i / 2 * vector_bytes);
    return i % 2 == 0 ? Simd::even_bfloats(both) : Simd::odd_bfloats(both);
  }

  template <int lane_bits>
  [[gnu::always_inline]] inline void count(Window<lane_bits>& window, const unsigned char* block, std::size_t bytes,
                                           std::uint64_t without_exponent) {
    if (!window.counted) window.counter.reset();
    window.counted = true;
    window.zeros += without_exponent;
    if constexpr (is_float64) {
      window.counter.add(bytes / vector_bytes / 16, [&](std::size_t chunk, int i) __attribute__((always_inline)) {
        const unsigned char* at = block + (chunk * 16 + static_cast<std::size_t>(i)) * vector_bytes;
        return Simd::template one_hot<64>(Simd::load(at), Layout::fraction_bits);
      });
      add_squares_of_doubles(block, bytes, tame(window.first, window.first + lane_bits - 1));
    } else if (tame(window.first, window.first + lane_bits - 1)) {
      count_floats<true>(window, block, bytes);
    } else {
      count_floats<false>(window, block, bytes);
      add_squares_of_floats(block, bytes);
    }
  }

  template <bool with_squares, int lane_bits>
  [[gnu::always_inline]] inline void count_floats(Window<lane_bits>& window, const unsigned char* block,
                                                  std::size_t bytes) {
    constexpr int per_vector = lane_bits / 32;
    constexpr std::size_t vectors_per_chunk = 16 / per_vector;
    const std::size_t vectors = bytes / vector_bytes * (4 / width);
    typename SquareSum<Simd>::InFloat squares(squares_);
    window.counter.add(vectors / vectors_per_chunk, [&](std::size_t chunk, int i) __attribute__((always_inline)) {
      const std::size_t vector = chunk * vectors_per_chunk + static_cast<std::size_t>(i / per_vector);
      const auto values = floats(block, vector);
      if (i % per_vector == 0) {
        if constexpr (with_squares) {
          if (i == 0 && chunk != 0 && chunk % (std::size_t{2} * per_vector) == 0) squares.to_double();
          squares.add(i / per_vector, values);
        }
      }
      return Simd::template one_hot<lane_bits>(Simd::bits_of(values), 23 + 32 * (i % per_vector));
    });
    if constexpr (with_squares) squares.finish();
  }

  // Do the squares of all numbers with these exponent fields stay far inside the type they are summed in?
  [[gnu::always_inline]] static inline bool tame(int lowest_field, int highest_field) {
    if constexpr (is_float64) return lowest_field >= bias - 500 && highest_field < bias + 500;
    return lowest_field >= bias - 60 && highest_field < bias + 60;
  }

  void add_squares_of_floats(const unsigned char* block, std::size_t bytes) {
    squares_.add_floats(bytes / vector_bytes * (4 / width),
                        [&](std::size_t i) __attribute__((always_inline)) { return floats(block, i); });
  }

  [[gnu::always_inline]] inline void add_squares_of_doubles(const unsigned char* block, std::size_t bytes,
                                                            bool squares_are_tame) {
    if (squares_are_tame) {
      squares_.add_doubles(bytes / vector_bytes, [&](std::size_t i) __attribute__((always_inline)) {
        return Simd::load_doubles(block + i * vector_bytes);
      });
    } else {
      add_wild_squares(block, bytes);
    }
  }

  // fp64 whose squares may leave the range of a double, see FlatStats::sum_squares.
  void add_wild_squares(const unsigned char* block, std::size_t bytes) {
    double sum = 0;
    for (std::size_t at = 0; at < bytes; at += sizeof(Bits)) {
      const Bits magnitude = magnitude_at(block + at);
      const int exponent = static_cast<int>(magnitude >> Layout::fraction_bits) - bias;
      if (exponent < -500) continue;
      if (exponent >= 500) {
        into_.add_squares(__builtin_huge_val());
        return;
      }
      const double value = Layout::value(magnitude);
      sum += value * value;
    }
    into_.add_squares(sum);
  }

  template <int lane_bits>
  void flush(Window<lane_bits>& window) {
    if (!window.counted) return;
    window.counter.flush([&](int position, std::uint64_t elements) {
      if (position == 0) elements -= window.zeros;
      if (elements == 0) return;
      const int exponent = window.first + ((position - window.first) & (lane_bits - 1)) - bias;
      if (exponent < 1 - Layout::bias) into_.subnormal += elements;
      into_.add(exponent, elements);
    });
    window.zeros = 0;
    window.counted = false;
  }

  // ---- fp16: 40 exponents, fixed windows

  void add_finite_float16(const unsigned char* block, std::size_t bytes, Lanes range, std::uint64_t without_exponent,
                          std::size_t padding) {
    // Of one sign and without zeros: the smallest magnitude may be the minimum or the maximum of all.
    both_signs_ = both_signs_ ||
                  ((total_.any_positive() || range.any_positive()) && (total_.any_negative() || range.any_negative()));
    if (!both_signs_ && zeros_ == 0) range.smallest = Lanes::smallest_of(block, bytes);
    include(range, without_exponent - padding);
    if (!range.any_above(below_2_to_8)) {
      count(low_, block, bytes, without_exponent);
      return;
    }
    range.smallest = Lanes::smallest_of(block, bytes);
    if (!range.any_below(two_to_minus_16)) {
      count(high_, block, bytes, without_exponent);
    } else {
      count(wide_, block, bytes, without_exponent);
    }
  }

  // ---- blocks with something unusual in them

  __attribute__((noinline)) void add_without_specials(const unsigned char* block, std::size_t bytes,
                                                      std::size_t padding) {
    alignas(64) unsigned char clean[block_bytes];
    const NonfiniteCount special = clear_specials(block, bytes, clean);
    into_.nan += special.nan;
    into_.positive_infinity += special.positive_infinity;
    into_.negative_infinity += special.negative_infinity;
    const std::uint64_t not_zero = special.nan + special.positive_infinity + special.negative_infinity + padding;
    std::uint64_t without_exponent = 0;
    const Lanes range = Lanes::template of<wanted>(clean, bytes, without_exponent);
    if constexpr (is_float16) {
      add_finite_float16(clean, bytes, range, without_exponent, not_zero);
    } else {
      add_finite(clean, bytes, range, without_exponent, without_exponent - not_zero);
    }
  }

  // The first block, a change of scale, or subnormals.
  __attribute__((noinline)) void add_finite(const unsigned char* block, std::size_t bytes, const Lanes& lanes_range,
                                            std::uint64_t without_exponent, std::uint64_t real_zeros) {
    include(lanes_range, real_zeros);
    const Range<Layout> range = lanes_range.reduce();
    if (range.smallest == 0) return;  // only zeros
    if (range.smallest >= Layout::smallest_normal) {
      count_normal(block, bytes, range, without_exponent);
      return;
    }
    alignas(64) unsigned char clean[block_bytes];
    without_exponent += count_and_clear_subnormals(block, bytes, clean);
    std::uint64_t ignored = 0;
    const Range<Layout> normal_range = Lanes::template of<wanted>(clean, bytes, ignored).reduce();
    if (normal_range.smallest != 0) count_normal(clean, bytes, normal_range, without_exponent);
  }

  // The block holds zeros and normal numbers.
  void count_normal(const unsigned char* block, std::size_t bytes, const Range<Layout>& range,
                    std::uint64_t without_exponent) {
    const int lowest = static_cast<int>(range.smallest >> Layout::fraction_bits);
    const int highest = static_cast<int>(range.largest() >> Layout::fraction_bits);
    if (highest - lowest < Low::positions) {
      move(low_, lowest, highest);
      count(low_, block, bytes, without_exponent);
    } else if (highest - lowest < 64) {
      move(wide_, lowest, highest);
      count(wide_, block, bytes, without_exponent);
    } else {
      for (std::size_t at = 0; at < bytes; at += sizeof(Bits)) {
        const auto field = static_cast<int>(magnitude_at(block + at) >> Layout::fraction_bits);
        ++into_.counts[field - bias - FlatStats::lowest_exponent];
      }
      into_.counts[-bias - FlatStats::lowest_exponent] -= without_exponent;
      into_.add(lowest - bias, 0);
      into_.add(highest - bias, 0);
      if constexpr (is_float64) {
        add_squares_of_doubles(block, bytes, tame(lowest, highest));
      } else {
        add_squares_of_floats(block, bytes);
      }
    }
  }

  // More room below than above: the smallest magnitude of a block varies more than the largest.
  template <int lane_bits>
  void move(Window<lane_bits>& window, int lowest, int highest) {
    if (window.first != 0 && lowest >= window.first && highest < window.first + lane_bits) return;
    flush(window);
    const int room = lane_bits - 1 - (highest - lowest);
    window.first = lowest - (room - room / 4);
    if (window.first < 1) window.first = 1;
  }

  std::uint64_t count_and_clear_subnormals(const unsigned char* block, std::size_t bytes, unsigned char* clean) {
    const Vector magnitude_mask = Simd::template broadcast<width>(Layout::magnitude_mask);
    const Vector bound = Simd::template broadcast<width>(static_cast<Bits>(Layout::smallest_normal - 1));
    std::uint64_t found = 0;
    double squares = 0;
    for (std::size_t at = 0; at < bytes; at += vector_bytes) {
      const Vector bits = Simd::load(block + at);
      Simd::store(clean + at, bits);
      // Zeros wrap round.
      const Vector before = Simd::template add<width>(Simd::bit_and(bits, magnitude_mask), Simd::ones());
      for (std::uint64_t lane_mask = Simd::template greater_unsigned<width>(bound, before); lane_mask != 0;
           lane_mask &= lane_mask - 1) {
        unsigned char* element = clean + at + static_cast<std::size_t>(__builtin_ctzll(lane_mask)) * sizeof(Bits);
        const Bits magnitude = magnitude_at(element);
        into_.add(Layout::exponent(magnitude), 1);
        if constexpr (!is_float64) squares += Layout::value(magnitude) * Layout::value(magnitude);
        std::memset(element, 0, sizeof(Bits));
        ++found;
      }
    }
    into_.add_squares(squares);
    into_.subnormal += found;
    return found;
  }

  // Copies the block with 0 in place of infinities and NaN.
  static NonfiniteCount clear_specials(const unsigned char* block, std::size_t bytes, unsigned char* clean) {
    NonfiniteCount special;
    const Vector magnitude_mask = Simd::template broadcast<width>(Layout::magnitude_mask);
    const Vector largest_finite = Simd::template broadcast<width>(Layout::largest_finite);
    for (std::size_t at = 0; at < bytes; at += vector_bytes) {
      const Vector bits = Simd::load(block + at);
      count_specials<Simd, Layout>(bits, special);
      const Vector magnitude = Simd::bit_and(bits, magnitude_mask);
      Simd::store(clean + at, Simd::template keep_up_to<width>(bits, magnitude, largest_finite));
    }
    return special;
  }

  [[gnu::always_inline]] static inline Bits magnitude_at(const unsigned char* element) {
    Bits bits;
    std::memcpy(&bits, element, sizeof(Bits));
    return Layout::magnitude(bits);
  }

  FlatStats& into_;
  Lanes total_;
  std::uint64_t zeros_ = 0;
  bool had_zeros_ = false;   // in the last block; not of fp16
  bool both_signs_ = false;  // of fp16
  Low low_;                  // the common case
  Window<32> high_;          // fp16 from 2^8 on
  Window<64> wide_;
  SquareSum<Simd> squares_;
};

}  // namespace ampscope::stats
