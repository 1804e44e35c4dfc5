// How a block of threads takes the statistics of a piece of a tensor. Written over an abstract block, so that the
// same lines run on the device and, lane after lane, on the host, where they are tested.
//
// Counting exponents is what is hard: values of a tensor share a few exponents, so counters shared by threads are
// fought over, and the more so the more skewed the data are. Here every lane has counters of its own, a byte each, in
// the shared memory of its warp and always in its own bank: no atomics and no conflicts whatever the data. Before a
// byte can overflow the warp adds its lanes up. Doubles have too many exponents for that; lanes of a warp that hold the
// same one elect a leader (match_any), who counts for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "probe/stats/cpu/formats.h"
#include "probe/stats/cuda/row.h"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#define AMPSCOPE_DEVICE __device__ __forceinline__
#define AMPSCOPE_UNROLL _Pragma("unroll")
#define AMPSCOPE_NO_UNROLL _Pragma("unroll 1")
#else
#define AMPSCOPE_DEVICE inline
#define AMPSCOPE_UNROLL
#define AMPSCOPE_NO_UNROLL
#endif

namespace ampscope::stats::cuda {

inline constexpr int lanes = 32;
inline constexpr int warps = 8;
/// Bytes of a tensor that one block looks at before it takes the next piece.
inline constexpr std::uint32_t chunk_bytes = 128 * 1024;
inline constexpr int vector_bytes = 16;

template <typename F>
struct Bins {
  static constexpr bool by_match = sizeof(typename F::Bits) == 8;
  static constexpr int fields = F::exponent_fields;
  static constexpr int count = fields + F::fraction_bits;
  static constexpr int words = (count + 3) / 4;  ///< of four byte counters for each lane
  static constexpr int warp_bytes = by_match ? 0 : words * lanes * 4;
  static constexpr int elements_a_vector = vector_bytes / static_cast<int>(sizeof(typename F::Bits));
  /// Vectors a lane has on the way from memory at once: enough to hide its latency, few enough for the registers.
  static constexpr int vectors_in_flight = elements_a_vector >= 16 ? 1 : elements_a_vector == 8 ? 2 : 4;
  static constexpr int rows =
      (count - Row::bins + static_cast<int>(sizeof(Row) / 8) - 1) / static_cast<int>(sizeof(Row) / 8) + 1;
};

/// Where a piece of a tensor lies. `count` elements from `data`, dense.
struct Piece {
  const void* data = nullptr;
  std::uint64_t count = 0;
};

/// What a lane keeps in registers. Ranks of 32 bits hold every format but the double.
template <typename F>
struct Lane {
  using Rank = std::conditional_t<sizeof(typename F::Bits) == 8, std::uint64_t, std::uint32_t>;
  std::uint32_t nan = 0;
  std::uint32_t positive_infinity = 0;
  std::uint32_t negative_infinity = 0;
  Rank largest = 0;
  Rank smallest = ~Rank{0};  ///< above `largest` until a finite element has been seen
  double squares = 0;
  float chain = 0;  ///< squares of formats that cannot overflow a float; goes to `squares` at every flush
};

/// Orders the finite values of a format: a smaller number has a smaller rank. Minus zero comes just below zero.
template <typename F>
AMPSCOPE_DEVICE typename Lane<F>::Rank rank_of(typename F::Bits bits) {
  using Rank = typename Lane<F>::Rank;
  constexpr Rank all = static_cast<Rank>((F::sign_bit - 1) | F::sign_bit);
  const Rank wide = bits;
  return (wide & F::sign_bit) != 0 ? wide ^ all : wide | F::sign_bit;
}

template <typename F>
inline constexpr bool squares_fit_a_float = F::exponent_fields <= 32;

/// 2^500 and 2^-500 as in flat_stats.h: only doubles reach them.
inline constexpr double square_limit = 0x1p500;
inline constexpr double square_floor = 0x1p-500;

template <typename F>
AMPSCOPE_DEVICE void add_square(Lane<F>& lane, typename F::Bits magnitude) {
  if constexpr (squares_fit_a_float<F>) {
#if defined(__CUDA_ARCH__)
    const float value = sizeof(typename F::Bits) == 2
                            ? __half2float(__ushort_as_half(static_cast<unsigned short>(magnitude)))
                            : static_cast<float>(F::value(magnitude));
#else
    const auto value = static_cast<float>(F::value(magnitude));
#endif
    lane.chain += value * value;
  } else {
#if defined(__CUDA_ARCH__)
    double value = 0;
    if constexpr (sizeof(typename F::Bits) == 2) {
      value = static_cast<double>(__uint_as_float(static_cast<unsigned>(magnitude) << 16));
    } else if constexpr (sizeof(typename F::Bits) == 4) {
      value = static_cast<double>(__uint_as_float(magnitude));
    } else {
      value = __longlong_as_double(static_cast<long long>(magnitude));
    }
#else
    const double value = F::value(magnitude);
#endif
    if constexpr (sizeof(typename F::Bits) == 8) {
      if (value >= square_limit) {
        lane.squares = __builtin_huge_val();
      } else if (value >= square_floor) {
        lane.squares += value * value;
      }
    } else {
      lane.squares += value * value;
    }
  }
}

/// Where the counter of a bin lies: four bins share a word of the lane, words of a lane share a bank.
AMPSCOPE_DEVICE int byte_of(int lane, int bin) {
  return ((bin & ~3) << 5) + (lane << 2) + (bin & 3);
}

/// One element. `count(bin)` counts it.
template <typename F, typename Count>
AMPSCOPE_DEVICE void look(Lane<F>& lane, typename F::Bits bits, const Count& count) {
  using Bits = typename F::Bits;
  const Bits magnitude = F::magnitude(bits);
  const bool special = F::specials == Specials::unsigned_zero ? bits == F::sign_bit : magnitude >= F::first_special;
  if (special) {
    if (F::is_nan(bits)) {
      ++lane.nan;
    } else if (F::negative(bits)) {
      ++lane.negative_infinity;
    } else {
      ++lane.positive_infinity;
    }
    return;
  }
  int bin = static_cast<int>(magnitude >> F::fraction_bits);
  if (static_cast<Bits>(magnitude - 1) < static_cast<Bits>(F::smallest_normal - 1)) {
    bin = Bins<F>::fields + 63 - __builtin_clzll(magnitude);
  }
  count(bin);
  const typename Lane<F>::Rank rank = rank_of<F>(bits);
  lane.largest = rank > lane.largest ? rank : lane.largest;
  lane.smallest = rank < lane.smallest ? rank : lane.smallest;
  add_square<F>(lane, magnitude);
}

/// Sixteen bytes of a tensor in registers.
struct alignas(vector_bytes) Vector {
  std::uint32_t words[4];
};

template <typename F>
AMPSCOPE_DEVICE typename F::Bits element(const Vector& vector, int i) {
  constexpr int bytes = static_cast<int>(sizeof(typename F::Bits));
  if constexpr (bytes == 8) {
    const auto low = static_cast<std::size_t>(i) * 2;
    return vector.words[low] | (static_cast<std::uint64_t>(vector.words[low + 1]) << 32);
  } else {
    return static_cast<typename F::Bits>(vector.words[static_cast<std::size_t>(i * bytes / 4)] >> (i * bytes % 4 * 8));
  }
}

/// A piece is looked at in chunks: how many there are, and what lies in one. The first has the elements in front of the
/// first whole vector with it, the last those behind the last one.
template <typename F>
struct Chunks {
  static constexpr std::uint64_t vectors_a_chunk = chunk_bytes / vector_bytes;

  const typename F::Bits* data;
  std::uint64_t head;
  std::uint64_t vectors;
  std::uint64_t tail;

  AMPSCOPE_DEVICE explicit Chunks(const Piece& piece) : data(static_cast<const typename F::Bits*>(piece.data)) {
    const std::uint64_t over = reinterpret_cast<std::uint64_t>(data) % vector_bytes;
    head = over == 0 ? 0 : (vector_bytes - over) / sizeof *data;
    head = head < piece.count ? head : piece.count;
    vectors = (piece.count - head) / Bins<F>::elements_a_vector;
    tail = piece.count - head - vectors * Bins<F>::elements_a_vector;
  }
};

/// Adds up what the lanes of a warp have counted.
///
/// A warp offers: index(); per_lane<T>(), a value for each lane; each_lane(f), which calls f(lane); count<F>(lane,
/// bin); counter_word(word, lane) and clear_word(word, lane), the lane's own four counters; any(f) and sum(f) over
/// f(lane) of all lanes; add(bin, n) to the block's totals; merge<F>(lanes), which adds what lanes hold in registers to
/// them. A block offers each_warp(f), which calls f(warp) for each, and publish<F>(elements), which adds its totals to
/// the row and clears them.
template <typename F, typename Warp, typename Lanes>
AMPSCOPE_DEVICE void flush(Warp& warp, Lanes& state) {
  if constexpr (!Bins<F>::by_match) {
    constexpr std::uint32_t every_other = 0x00ff00ffU;
    AMPSCOPE_NO_UNROLL
    for (int word = 0; word < Bins<F>::words; ++word) {
      if (!warp.any([&](int lane) { return warp.counter_word(word, lane) != 0; })) continue;
      // Two sums in one word each: 32 lanes of at most 255 stay below 2^16.
      const std::uint32_t even = warp.sum([&](int lane) { return warp.counter_word(word, lane) & every_other; });
      const std::uint32_t odd = warp.sum([&](int lane) { return (warp.counter_word(word, lane) >> 8) & every_other; });
      warp.each_lane([&](int lane) { warp.clear_word(word, lane); });
      warp.add(4 * word, even & 0xffffU);
      warp.add(4 * word + 1, odd & 0xffffU);
      warp.add(4 * word + 2, even >> 16);
      warp.add(4 * word + 3, odd >> 16);
    }
  }
  if constexpr (squares_fit_a_float<F>) {
    warp.each_lane([&](int lane) {
      state[lane].squares += static_cast<double>(state[lane].chain);
      state[lane].chain = 0;
    });
  }
}

template <typename F, typename Warp, typename Lanes>
AMPSCOPE_DEVICE void look_at_loose(Warp& warp, Lanes& state, const typename F::Bits* data, std::uint64_t count) {
  warp.each_lane([&](int lane) {
    if (static_cast<std::uint64_t>(lane) < count) {
      look<F>(state[lane], data[lane], [&](int bin) { warp.template count<F>(lane, bin); });
    }
  });
}

/// Chunk `chunk` of `chunks` of a dense piece.
template <typename F, typename Block>
AMPSCOPE_DEVICE void look_at_chunk(Block& block, const Piece& piece, std::uint64_t chunk, std::uint64_t chunks) {
  using Counters = Bins<F>;
  constexpr int vectors_in_flight = Counters::vectors_in_flight;
  // What a lane may count before a byte could overflow.
  constexpr int vectors_a_flush = 255 / Counters::elements_a_vector / vectors_in_flight * vectors_in_flight;
  static_assert(vectors_a_flush > 0);
  constexpr int rounds = vectors_a_flush / vectors_in_flight;
  const Chunks<F> layout(piece);
  const std::uint64_t first = chunk * Chunks<F>::vectors_a_chunk;
  const std::uint64_t end =
      first + Chunks<F>::vectors_a_chunk < layout.vectors ? first + Chunks<F>::vectors_a_chunk : layout.vectors;
  const auto* const body = reinterpret_cast<const Vector*>(layout.data + layout.head);

  block.template each_warp<F>([&](auto& warp) {
    auto state = warp.template per_lane<Lane<F>>();
    constexpr std::uint64_t stride = static_cast<std::uint64_t>(warps) * lanes;
    std::uint64_t at = first + static_cast<std::uint64_t>(warp.index()) * lanes;
    while (at < end) {
      for (int round = 0; round < rounds && at < end; ++round, at += stride * vectors_in_flight) {
        warp.each_lane([&](int lane) {
          Vector loaded[vectors_in_flight];
          AMPSCOPE_UNROLL
          for (int i = 0; i < vectors_in_flight; ++i) {
            const std::uint64_t mine = at + static_cast<std::uint64_t>(i) * stride + static_cast<std::uint64_t>(lane);
            if (mine < end) loaded[i] = body[mine];
          }
          AMPSCOPE_UNROLL
          for (int i = 0; i < vectors_in_flight; ++i) {
            const std::uint64_t mine = at + static_cast<std::uint64_t>(i) * stride + static_cast<std::uint64_t>(lane);
            if (mine >= end) continue;
            AMPSCOPE_UNROLL
            for (int e = 0; e < Counters::elements_a_vector; ++e) {
              look<F>(state[lane], element<F>(loaded[i], e), [&](int bin) { warp.template count<F>(lane, bin); });
            }
          }
        });
      }
      flush<F>(warp, state);
    }
    // At most 15 elements each.
    if (chunk == 0 && warp.index() == 0) look_at_loose<F>(warp, state, layout.data, layout.head);
    if (chunk + 1 == chunks && warp.index() == warps - 1) {
      look_at_loose<F>(warp, state, layout.data + layout.head + layout.vectors * Counters::elements_a_vector,
                       layout.tail);
    }
    flush<F>(warp, state);
    warp.template merge<F>(state);
  });
  std::uint64_t looked_at = end > first ? (end - first) * Counters::elements_a_vector : 0;
  if (chunk == 0) looked_at += layout.head;
  if (chunk + 1 == chunks) looked_at += layout.tail;
  block.template publish<F>(looked_at);
}

/// A tensor that is not dense, by the sizes and strides (in elements) of its dimensions, innermost first.
struct Geometry {
  static constexpr int max_dims = 6;
  std::int32_t dims = 0;
  std::int64_t sizes[max_dims] = {};
  std::int64_t strides[max_dims] = {};
};

inline constexpr std::uint64_t strided_chunk = std::uint64_t{16} * 1024;

/// The same of a tensor that is not dense.
template <typename F, typename Block>
AMPSCOPE_DEVICE void look_at_strided(Block& block, const Piece& piece, const Geometry& geometry, std::uint64_t chunk) {
  const auto* const data = static_cast<const typename F::Bits*>(piece.data);
  const std::uint64_t first = chunk * strided_chunk;
  const std::uint64_t end = first + strided_chunk < piece.count ? first + strided_chunk : piece.count;
  block.template each_warp<F>([&](auto& warp) {
    auto state = warp.template per_lane<Lane<F>>();
    int since_flush = 0;
    for (std::uint64_t at = first + static_cast<std::uint64_t>(warp.index()) * lanes; at < end;
         at += std::uint64_t{warps} * lanes) {
      warp.each_lane([&](int lane) {
        std::uint64_t rest = at + static_cast<std::uint64_t>(lane);
        if (rest >= end) return;
        std::int64_t offset = 0;
        for (int d = 0; d < geometry.dims; ++d) {
          const auto size = static_cast<std::uint64_t>(geometry.sizes[d]);
          offset += static_cast<std::int64_t>(rest % size) * geometry.strides[d];
          rest /= size;
        }
        look<F>(state[lane], data[offset], [&](int bin) { warp.template count<F>(lane, bin); });
      });
      if (++since_flush == 255) {
        flush<F>(warp, state);
        since_flush = 0;
      }
    }
    flush<F>(warp, state);
    warp.template merge<F>(state);
  });
  block.template publish<F>(end - first);
}

}  // namespace ampscope::stats::cuda
