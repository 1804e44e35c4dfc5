// The scan that the AVX2 and the AVX-512 path share. Simd stands for the instructions: a class in an unnamed namespace
// of the file that includes this one, so that every instantiation stays inside that file.
//
// Memory is read once, in blocks that stay in the first-level cache while several short loops look at them:
//   1. range: largest values of both signs, smallest non-zero magnitude, zeros;
//   2. exponents: a one-hot lane for each element, at its exponent modulo 32 (or 64), counted by BitCounter. The range
//      says whether the exponents of the block are unique modulo 32: they nearly always are;
//   3. squares.
// A block that has infinities, NaN, subnormals or too wide a range is found by its range and goes another, exact way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "probe/stats/cpu/bit_counter.h"
#include "probe/stats/cpu/formats.h"
#include "probe/stats/cpu/kernel_paths.h"
#include "probe/stats/cpu/square_sum.h"

namespace ampscope::stats {

/// Half of a first-level cache of 32 KiB is left to the next block, which is fetched meanwhile.
inline constexpr std::size_t block_bytes = 8192;

/// What one loop over a block says about its elements, a lane each.
template <typename Simd, typename Layout>
struct LaneRange {
  using Vector = typename Simd::Vector;
  using Bits = typename Layout::Bits;
  static constexpr int width = sizeof(Bits);

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
  /// Is every non-zero magnitude in lower..upper?
  [[gnu::always_inline]] inline bool within(Bits lower, Bits upper) const {
    const auto bound = [](Bits bits) { return Simd::template broadcast<width>(bits); };
    return !Simd::template any_greater_signed<width>(largest_signed, bound(upper)) &&
           !Simd::template any_greater_unsigned<width>(largest_unsigned,
                                                       bound(static_cast<Bits>(upper | Layout::sign_bit))) &&
           !Simd::template any_greater_unsigned<width>(bound(static_cast<Bits>(2 * lower - 1)), smallest);
  }
};

/// LaneRange of all lanes together.
template <typename Layout>
struct Range {
  using Bits = typename Layout::Bits;
  Bits largest_positive = 0;  ///< magnitude; 0: no positive element
  Bits largest_negative = 0;
  Bits smallest = 0;  ///< of the non-zero magnitudes; 0: none

  [[gnu::always_inline]] inline Bits largest() const {
    return largest_positive > largest_negative ? largest_positive : largest_negative;
  }
  [[gnu::always_inline]] inline int lowest_field() const { return static_cast<int>(smallest >> Layout::fraction_bits); }
  [[gnu::always_inline]] inline int highest_field() const {
    return static_cast<int>(largest() >> Layout::fraction_bits);
  }
};

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

template <typename Simd, typename Layout>
class Scan {
 public:
  using Bits = typename Layout::Bits;
  using Vector = typename Simd::Vector;
  static constexpr std::size_t vector_bytes = sizeof(Vector);
  static constexpr std::size_t lanes = vector_bytes / sizeof(Bits);
  static constexpr std::size_t chunk_bytes = 16 * vector_bytes;

  explicit Scan(FlatStats& into) : into_(into) {
    total_.reset();
    narrow_.counter.reset();
    wide_.counter.reset();
    if constexpr (is_float16) {
      widened_.counter.reset();
      narrow_.first = 1;
    }
    squares_.reset();
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
    if constexpr (sizeof(Bits) < 8) flush(narrow_);
    flush(wide_);
    if constexpr (is_float16) flush_widened();
    into_.zero += zeros_;
    into_.add_squares(squares_.total());
    const Range<Layout> range = reduce(total_);
    if (zeros_ == 0 && range.smallest == 0) return;  // nothing finite
    const auto minus = [](Bits magnitude) { return magnitude == 0 ? 0 : -Layout::value(magnitude); };
    // Of one sign only: the other end is a zero or the smallest magnitude.
    const Bits nearest_zero = zeros_ != 0 ? Bits{0} : range.smallest;
    into_.include(range.largest_negative != 0 ? minus(range.largest_negative) : Layout::value(nearest_zero),
                  range.largest_positive != 0 ? Layout::value(range.largest_positive) : minus(nearest_zero));
  }

 private:
  static constexpr int width = sizeof(Bits);
  static constexpr bool is_float16 = Layout::fraction_bits == 10;
  using Lanes = LaneRange<Simd, Layout>;

  /// A counter whose positions stand for the exponent fields first..first + positions - 1, modulo positions.
  template <int lane_bits>
  struct Window {
    static constexpr int positions = lane_bits;
    BitCounter<Simd, lane_bits> counter;
    std::uint64_t zeros = 0;  // what was counted at position 0 and has no exponent
    int first = 0;            // 0: not in use. Field 0, the subnormals, is never inside
    bool counted = false;
    bool tame_squares = true;

    [[gnu::always_inline]] inline Bits lower() const {
      return static_cast<Bits>(static_cast<std::uint64_t>(first) << Layout::fraction_bits);
    }
    [[gnu::always_inline]] inline Bits upper() const {
      const int end = first + positions;
      return end >= Layout::exponent_fields - 1
                 ? static_cast<Bits>(Layout::first_special - 1)
                 : static_cast<Bits>((static_cast<std::uint64_t>(end) << Layout::fraction_bits) - 1);
    }
  };

  void add_block(const unsigned char* block, std::size_t bytes, std::size_t padding) {
    std::uint64_t block_zeros = 0;
    const Lanes range = lane_range(block, bytes, block_zeros);
    if constexpr (width < 8) {
      if (narrow_.first != 0 && range.within(narrow_.lower(), narrow_.upper())) {
        count(narrow_, block, bytes, block_zeros);
        finish_block(block, bytes, range, block_zeros - padding, narrow_.tame_squares);
        return;
      }
    }
    if (wide_.first != 0 && range.within(wide_.lower(), wide_.upper())) {
      count(wide_, block, bytes, block_zeros);
      finish_block(block, bytes, range, block_zeros - padding, wide_.tame_squares);
      return;
    }
    add_unusual_block(block, bytes, padding, range, block_zeros);
  }

  [[gnu::always_inline]] inline void finish_block(const unsigned char* block, std::size_t bytes, const Lanes& range,
                                                  std::uint64_t block_zeros, bool squares_are_tame) {
    total_.add(range);
    zeros_ += block_zeros;
    add_squares(block, bytes, squares_are_tame);
  }

  // Do the squares of all numbers with these exponent fields stay far inside the type they are summed in?
  [[gnu::always_inline]] static inline bool tame(int lowest_field, int highest_field) {
    if constexpr (width == 8) return lowest_field >= 1023 - 500 && highest_field < 1023 + 500;
    if constexpr (width == 2 && !is_float16) return lowest_field >= 127 - 60 && highest_field < 127 + 60;
    return true;
  }

  [[gnu::always_inline]] inline void add_squares(const unsigned char* block, std::size_t bytes, bool tame_squares) {
    const auto vector = [block](std::size_t i) __attribute__((always_inline)) { return block + i * vector_bytes; };
    if constexpr (is_float16) {
      squares_.add_in_float(2 * bytes / vector_bytes, [&](std::size_t i) __attribute__((always_inline)) {
        return Simd::float16_as_float(block + i * (vector_bytes / 2));
      });
    } else if constexpr (width == 2) {
      const auto load = [&](std::size_t i) __attribute__((always_inline)) {
        const Vector both = Simd::load(vector(i / 2));
        return i % 2 == 0 ? Simd::even_bfloats(both) : Simd::odd_bfloats(both);
      };
      if (tame_squares) {
        squares_.add_in_float(2 * bytes / vector_bytes, load);
      } else {
        squares_.add_floats(2 * bytes / vector_bytes, load);
      }
    } else if constexpr (width == 4) {
      squares_.add_floats(bytes / vector_bytes,
                          [&](std::size_t i) __attribute__((always_inline)) { return Simd::load_floats(vector(i)); });
    } else if (tame_squares) {
      squares_.add_doubles(bytes / vector_bytes,
                           [&](std::size_t i) __attribute__((always_inline)) { return Simd::load_doubles(vector(i)); });
    } else {
      add_wild_squares(block, bytes);
    }
  }

  // fp64 whose squares may leave the range of a double, see FlatStats::sum_squares.
  void add_wild_squares(const unsigned char* block, std::size_t bytes) {
    double sum = 0;
    for (std::size_t i = 0; i < bytes / sizeof(Bits); ++i) {
      Bits bits;
      std::memcpy(&bits, block + i * sizeof(Bits), sizeof(Bits));
      const int exponent = static_cast<int>(Layout::magnitude(bits) >> Layout::fraction_bits) - Layout::bias;
      if (exponent < -500) continue;
      if (exponent >= 500) {
        into_.add_squares(__builtin_huge_val());
        return;
      }
      const double value = Layout::value(Layout::magnitude(bits));
      sum += value * value;
    }
    into_.add_squares(sum);
  }

  [[gnu::always_inline]] static inline Lanes lane_range(const unsigned char* block, std::size_t bytes,
                                                        std::uint64_t& block_zeros) {
    Lanes a;
    Lanes b;
    a.reset();
    b.reset();
    typename Simd::template ZeroCounter<width> counter;
    const Vector ones = Simd::ones();
    const auto look = [&](Lanes& range, const unsigned char* at) __attribute__((always_inline)) {
      const Vector bits = Simd::load(at);
      const Vector doubled = Simd::template add<width>(bits, bits);
      range.largest_signed = Simd::template max_signed<width>(range.largest_signed, bits);
      range.largest_unsigned = Simd::template max_unsigned<width>(range.largest_unsigned, bits);
      range.smallest = Simd::template min_unsigned<width>(range.smallest, Simd::template add<width>(doubled, ones));
      counter.add(doubled);
    };
    for (std::size_t at = 0; at < bytes; at += 2 * vector_bytes) {
      look(a, block + at);
      look(b, block + at + vector_bytes);
    }
    a.add(b);
    block_zeros = counter.total();
    return a;
  }

  [[gnu::always_inline]] static inline Range<Layout> reduce(const Lanes& lanes) {
    Range<Layout> range;
    const auto top_signed = static_cast<Bits>(Simd::template reduce_max_signed<width>(lanes.largest_signed));
    const auto top_unsigned = static_cast<Bits>(Simd::template reduce_max_unsigned<width>(lanes.largest_unsigned));
    const auto smallest = static_cast<Bits>(Simd::template reduce_min_unsigned<width>(lanes.smallest));
    if (!Layout::negative(top_signed)) range.largest_positive = top_signed;
    if (Layout::negative(top_unsigned)) range.largest_negative = Layout::magnitude(top_unsigned);
    if (smallest != static_cast<Bits>(~Bits{0})) range.smallest = static_cast<Bits>((smallest >> 1) + 1);
    return range;
  }

  template <int lane_bits>
  [[gnu::always_inline]] inline void count(Window<lane_bits>& window, const unsigned char* block, std::size_t bytes,
                                           std::uint64_t without_exponent) {
    constexpr int fraction = Layout::fraction_bits;
    constexpr int per_vector = lane_bits / (8 * width);
    window.counter.add(
        bytes / vector_bytes * per_vector / 16, [&](std::size_t chunk, int i) __attribute__((always_inline)) {
          const unsigned char* at =
              block + (chunk * 16 / per_vector + static_cast<std::size_t>(i / per_vector)) * vector_bytes;
          if (i % per_vector == 0) __builtin_prefetch(at + block_bytes);
          return Simd::template one_hot<lane_bits>(Simd::load(at), fraction + (i % per_vector) * 8 * width);
        });
    window.zeros += without_exponent;
    window.counted = true;
  }

  template <int lane_bits>
  void flush(Window<lane_bits>& window) {
    if (!window.counted) return;
    window.counter.flush([&](int position, std::uint64_t elements) {
      if (position == 0) elements -= window.zeros;
      if (elements == 0) return;
      const int field = window.first + ((position - window.first) & (lane_bits - 1));
      into_.add(field - Layout::bias, elements);
    });
    window.zeros = 0;
    window.counted = false;
  }

  // ---- blocks with something unusual in them

  // Any of: the first block, a change of scale, special values, subnormals.
  __attribute__((noinline)) void add_unusual_block(const unsigned char* block, std::size_t bytes, std::size_t padding,
                                                   Lanes lanes_range, std::uint64_t block_zeros) {
    alignas(64) unsigned char clean[block_bytes];
    std::uint64_t without_exponent = block_zeros;
    Range<Layout> range = reduce(lanes_range);
    if (range.largest() >= Layout::first_special) {
      const NonfiniteCount special = clear_specials(block, bytes, clean);
      block = clean;
      into_.nan += special.nan;
      into_.positive_infinity += special.positive_infinity;
      into_.negative_infinity += special.negative_infinity;
      lanes_range = lane_range(block, bytes, without_exponent);
      block_zeros = without_exponent - special.nan - special.positive_infinity - special.negative_infinity;
      range = reduce(lanes_range);
    }
    total_.add(lanes_range);
    zeros_ += block_zeros - padding;
    if (range.smallest == 0) return;  // only zeros
    if (range.smallest < Layout::smallest_normal) {
      if constexpr (is_float16) {
        if (range.highest_field() < widened_top) {
          count_widened(block, bytes, without_exponent);
          add_squares(block, bytes, true);
          return;
        }
      }
      add_squares(block, bytes, false);
      without_exponent += count_and_clear_subnormals(block, bytes, clean);
      block = clean;
      std::uint64_t ignored = 0;
      range = reduce(lane_range(block, bytes, ignored));
      if (range.smallest == 0) return;
      count_in_some_window(block, bytes, range, without_exponent);
      return;
    }
    count_in_some_window(block, bytes, range, without_exponent);
    add_squares(block, bytes, tame(range.lowest_field(), range.highest_field()));
  }

  std::uint64_t count_and_clear_subnormals(const unsigned char* block, std::size_t bytes, unsigned char* clean) {
    const Vector magnitude_mask = Simd::template broadcast<width>(Layout::magnitude_mask);
    const Vector bound = Simd::template broadcast<width>(static_cast<Bits>(Layout::smallest_normal - 1));
    std::uint64_t found = 0;
    for (std::size_t at = 0; at < bytes; at += vector_bytes) {
      const Vector bits = Simd::load(block + at);
      Simd::store(clean + at, bits);
      // Zeros wrap round.
      const Vector before = Simd::template add<width>(Simd::bit_and(bits, magnitude_mask), Simd::ones());
      for (std::uint64_t lane_mask = Simd::template greater_unsigned<width>(bound, before); lane_mask != 0;
           lane_mask &= lane_mask - 1) {
        unsigned char* element = clean + at + static_cast<std::size_t>(__builtin_ctzll(lane_mask)) * sizeof(Bits);
        Bits subnormal;
        std::memcpy(&subnormal, element, sizeof(Bits));
        into_.add(Layout::exponent(Layout::magnitude(subnormal)), 1);
        std::memset(element, 0, sizeof(Bits));
        ++found;
      }
    }
    into_.subnormal += found;
    return found;
  }

  // Copies the block with 0 in place of infinities and NaN.
  static NonfiniteCount clear_specials(const unsigned char* block, std::size_t bytes, unsigned char* clean) {
    NonfiniteCount special;
    const Vector magnitude_mask = Simd::template broadcast<width>(Layout::magnitude_mask);
    const Vector largest_finite = Simd::template broadcast<width>(static_cast<Bits>(Layout::first_special - 1));
    for (std::size_t at = 0; at < bytes; at += vector_bytes) {
      const Vector bits = Simd::load(block + at);
      count_specials<Simd, Layout>(bits, special);
      Simd::store(clean + at,
                  Simd::template keep_up_to<width>(bits, Simd::bit_and(bits, magnitude_mask), largest_finite));
    }
    return special;
  }

  // The block holds zeros and normal numbers.
  void count_in_some_window(const unsigned char* block, std::size_t bytes, const Range<Layout>& range,
                            std::uint64_t without_exponent) {
    const int lowest = range.lowest_field();
    const int highest = range.highest_field();
    if constexpr (is_float16) {
      count(narrow_, block, bytes, without_exponent);
      return;
    }
    if constexpr (width < 8) {
      if (highest - lowest < 32) {
        move(narrow_, lowest, highest);
        count(narrow_, block, bytes, without_exponent);
        return;
      }
    }
    if (highest - lowest < 64) {
      move(wide_, lowest, highest);
      count(wide_, block, bytes, without_exponent);
      return;
    }
    for (std::size_t i = 0; i < bytes / sizeof(Bits); ++i) {
      Bits bits;
      std::memcpy(&bits, block + i * sizeof(Bits), sizeof(Bits));
      const Bits magnitude = Layout::magnitude(bits);
      ++into_.counts[static_cast<int>(magnitude >> Layout::fraction_bits) - Layout::bias - FlatStats::lowest_exponent];
    }
    into_.counts[-Layout::bias - FlatStats::lowest_exponent] -= without_exponent;
    into_.add(lowest - Layout::bias, 0);
    into_.add(highest - Layout::bias, 0);
  }

  // More room below than above: the smallest magnitude of a block varies more than the largest.
  template <int lane_bits>
  void move(Window<lane_bits>& window, int lowest, int highest) {
    if (window.first != 0 && lowest >= window.first && highest < window.first + lane_bits) return;
    flush(window);
    const int room = lane_bits - 1 - (highest - lowest);
    window.first = lowest - (room - room / 4);
    if (window.first < 1) window.first = 1;
    window.tame_squares = tame(window.first, window.first + lane_bits - 1);
  }

  // ---- fp16 with subnormals: as fp32 they have an exponent of their own

  static constexpr int widened_first = 127 - 24;
  static constexpr int widened_top = 8 + 15;  // field of 2^8: below it, all exponents are unique modulo 32

  void count_widened(const unsigned char* block, std::size_t bytes, std::uint64_t without_exponent) {
    widened_.counter.add(bytes / (vector_bytes / 2) / 16, [&](std::size_t chunk, int i) __attribute__((always_inline)) {
      const unsigned char* at = block + (chunk * 16 + static_cast<std::size_t>(i)) * (vector_bytes / 2);
      return Simd::template one_hot<32>(Simd::bits_of(Simd::float16_as_float(at)), 23);
    });
    widened_.zeros += without_exponent;
    widened_.counted = true;
  }

  void flush_widened() {
    if (!widened_.counted) return;
    widened_.counter.flush([&](int position, std::uint64_t elements) {
      if (position == 0) elements -= widened_.zeros;
      if (elements == 0) return;
      const int exponent = widened_first + ((position - widened_first) & 31) - 127;
      if (exponent < 1 - Layout::bias) into_.subnormal += elements;
      into_.add(exponent, elements);
    });
    widened_.counted = false;
  }

  FlatStats& into_;
  Lanes total_;
  std::uint64_t zeros_ = 0;
  Window<32> narrow_;
  Window<64> wide_;
  Window<32> widened_;
  SquareSum<Simd> squares_;
};

}  // namespace ampscope::stats
