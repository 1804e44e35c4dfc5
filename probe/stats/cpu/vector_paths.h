// The entry points of a vector path, made from its instructions. See vector_scan.h on who may include this.
#pragma once

#include "probe/stats/cpu/byte_formats.h"
#include "probe/stats/cpu/kernel_paths.h"
#include "probe/stats/cpu/vector_scan.h"

namespace ampscope::stats {

template <typename Simd>
void accumulate_vectors(Runs& runs, FlatStats& into) noexcept {
  with_layout(runs.format(), [&](auto layout) __attribute__((always_inline)) {
    using Layout = decltype(layout);
    if constexpr (sizeof(typename Layout::Bits) == 1) {
      accumulate_bytes(runs, into);
    } else {
      Scan<Simd, Layout> scan(into);
      for (Run run; runs.next(run);)
        scan.add(static_cast<const unsigned char*>(run.data), run.count);
      scan.finish();
    }
  });
}

/// Calls look(block, bytes) for every block of the runs; the last of each run is filled up with zeros to whole vectors.
template <typename Simd, typename Layout, std::size_t unrolled, typename Look>
[[gnu::always_inline]] inline void for_each_block(Runs& runs, const Look& look) {
  constexpr std::size_t unit = unrolled * sizeof(typename Simd::Vector);
  for (Run run; runs.next(run);) {
    const auto* data = static_cast<const unsigned char*>(run.data);
    const std::size_t bytes = run.count * sizeof(typename Layout::Bits);
    const std::size_t whole = bytes / unit * unit;
    for (std::size_t at = 0; at < whole; at += 4 * block_bytes) {
      look(data + at, whole - at < 4 * block_bytes ? whole - at : 4 * block_bytes);
    }
    if (whole < bytes) {
      alignas(64) unsigned char rest[unit];
      std::memcpy(rest, data + whole, bytes - whole);
      std::memset(rest + (bytes - whole), 0, unit - (bytes - whole));
      look(rest, unit);
    }
  }
}

template <typename Simd, typename Layout>
LargestMagnitude largest_magnitude_of(Runs& runs) noexcept {
  using Vector = typename Simd::Vector;
  using Bits = typename Layout::Bits;
  constexpr int width = sizeof(Bits);
  constexpr std::size_t step = sizeof(Vector);
  constexpr std::size_t unrolled = 4;
  const Vector mask = Simd::template broadcast<width>(Layout::magnitude_mask);
  const Vector largest_number = Simd::template broadcast<width>(static_cast<Bits>(
      Layout::specials == Specials::ieee ? Layout::first_special : static_cast<Bits>(Layout::first_special - 1)));
  const Vector last_finite = Simd::template broadcast<width>(static_cast<Bits>(Layout::first_special - 1));
  // The magnitude with which a NaN is the largest of all: without minus zero, it takes that pattern's place.
  const auto magnitude = [&](Vector bits) __attribute__((always_inline)) {
    if constexpr (Layout::specials == Specials::unsigned_zero) return Simd::unsigned_zero_magnitude(bits);
    return Simd::bit_and(bits, mask);
  };
  Vector total = Simd::zero();
  bool nonfinite = false;
  for_each_block<Simd, Layout, unrolled>(
      runs, [&](const unsigned char* block, std::size_t bytes) __attribute__((always_inline)) {
        Vector largest[unrolled] = {Simd::zero(), Simd::zero(), Simd::zero(), Simd::zero()};
        for (std::size_t at = 0; at < bytes; at += unrolled * step) {
          for (std::size_t k = 0; k < unrolled; ++k) {
            largest[k] = Simd::template max_unsigned<width>(largest[k], magnitude(Simd::load(block + at + k * step)));
          }
        }
        Vector all = Simd::template max_unsigned<width>(Simd::template max_unsigned<width>(largest[0], largest[1]),
                                                        Simd::template max_unsigned<width>(largest[2], largest[3]));
        if (Simd::template any_greater_unsigned<width>(all, last_finite)) [[unlikely]] {
          nonfinite = true;
          all = Simd::zero();
          for (std::size_t at = 0; at < bytes; at += step) {
            const Vector here = magnitude(Simd::load(block + at));
            all = Simd::template max_unsigned<width>(all, Simd::template keep_up_to<width>(here, here, largest_number));
          }
        }
        total = Simd::template max_unsigned<width>(total, all);
      });
  LargestMagnitude result;
  result.nonfinite = nonfinite;
  result.bits = Simd::template reduce_max_unsigned<width>(total);
  return result;
}

template <typename Simd>
LargestMagnitude largest_magnitude_vectors(Runs& runs) noexcept {
  LargestMagnitude result;
  with_layout(runs.format(), [&](auto layout) __attribute__((always_inline)) {
    result = largest_magnitude_of<Simd, decltype(layout)>(runs);
  });
  return result;
}

template <typename Simd>
NonfiniteCount count_nonfinite_vectors(Runs& runs) noexcept {
  NonfiniteCount result;
  with_layout(runs.format(), [&](auto layout) __attribute__((always_inline)) {
    using Layout = decltype(layout);
    if constexpr (sizeof(typename Layout::Bits) == 1) {
      result = count_nonfinite_bytes(runs);
    } else {
      for_each_block<Simd, Layout, 1>(
          runs, [&](const unsigned char* block, std::size_t bytes) __attribute__((always_inline)) {
            for (std::size_t at = 0; at < bytes; at += sizeof(typename Simd::Vector)) {
              count_specials<Simd, Layout>(Simd::load(block + at), result);
            }
          });
    }
  });
  return result;
}

template <typename Simd>
consteval KernelPath vector_path(const char* name) {
  return {name, accumulate_vectors<Simd>, largest_magnitude_vectors<Simd>, count_nonfinite_vectors<Simd>};
}

}  // namespace ampscope::stats
