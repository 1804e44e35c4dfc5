// The block of counting.h made of real threads.
#pragma once

#include <cstddef>

#include "probe/stats/cuda/counting.h"
#include "probe/stats/cuda/row.h"

namespace ampscope::stats::cuda {

inline constexpr unsigned every_lane = 0xffffffffU;
extern __shared__ unsigned char counters[];  ///< of all warps; all zero between chunks

/// What the warps of a block have found in a chunk.
struct Totals {
  std::uint32_t nan;
  std::uint32_t positive_infinity;
  std::uint32_t negative_infinity;
  unsigned long long largest;   ///< as in Row
  unsigned long long smallest;  ///< as in Row
  double squares;
  std::uint32_t counts[Row::bins];
};

template <typename T>
struct PerLane {
  T value;
  AMPSCOPE_DEVICE T& operator[](int) { return value; }
};

__device__ __forceinline__ std::uint32_t largest_of_warp(std::uint32_t value) {
  return __reduce_max_sync(every_lane, value);
}
__device__ __forceinline__ std::uint64_t largest_of_warp(std::uint64_t value) {
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const std::uint64_t other = __shfl_xor_sync(every_lane, static_cast<unsigned long long>(value), distance);
    value = other > value ? other : value;
  }
  return value;
}

class Warp {
 public:
  __device__ Warp(Totals& totals, unsigned char* bytes, std::uint32_t* doubles)
      : totals_(totals), bytes_(bytes), doubles_(doubles) {}

  __device__ int index() const { return static_cast<int>(threadIdx.x) / lanes; }
  template <typename T>
  __device__ PerLane<T> per_lane() const {
    return {};
  }
  template <typename Work>
  __device__ void each_lane(const Work& work) const {
    work(static_cast<int>(threadIdx.x) % lanes);
  }
  template <typename F>
  __device__ void count(int lane, int bin) {
    if constexpr (Bins<F>::by_match) {
      const unsigned same = __match_any_sync(__activemask(), bin);
      if (__ffs(static_cast<int>(same)) - 1 == lane) atomicAdd(&doubles_[bin], static_cast<unsigned>(__popc(same)));
    } else {
      ++bytes_[byte_of(lane, bin)];
    }
  }
  __device__ std::uint32_t counter_word(int word, int lane) const { return words()[word * lanes + lane]; }
  __device__ void clear_word(int word, int lane) { words()[word * lanes + lane] = 0; }
  template <typename Ask>
  __device__ bool any(const Ask& ask) const {
    return __any_sync(every_lane, ask(static_cast<int>(threadIdx.x) % lanes)) != 0;
  }
  template <typename Value>
  __device__ std::uint32_t sum(const Value& value) const {
    return __reduce_add_sync(every_lane, value(static_cast<int>(threadIdx.x) % lanes));
  }
  __device__ void add(int bin, std::uint32_t elements) {
    // The sums are known to all lanes; each bin of a word has a lane that adds it.
    if (static_cast<int>(threadIdx.x) % lanes == (bin & 3) && elements != 0) atomicAdd(&totals_.counts[bin], elements);
  }
  template <typename F>
  __device__ void merge(PerLane<Lane<F>>& state) {
    const Lane<F>& lane = state.value;
    using Rank = typename Lane<F>::Rank;
    constexpr Rank all = static_cast<Rank>((F::sign_bit - 1) | F::sign_bit);
    const bool finite = lane.largest >= lane.smallest;
    const Rank largest = largest_of_warp(finite ? lane.largest + 1 : Rank{0});
    const Rank smallest = largest_of_warp(finite ? all - lane.smallest + 1 : Rank{0});
    const unsigned nan = __reduce_add_sync(every_lane, lane.nan);
    const unsigned positive = __reduce_add_sync(every_lane, lane.positive_infinity);
    const unsigned negative = __reduce_add_sync(every_lane, lane.negative_infinity);
    double squares = lane.squares;
    for (int distance = lanes / 2; distance > 0; distance /= 2)
      squares += __shfl_xor_sync(every_lane, squares, distance);
    if (threadIdx.x % lanes != 0) return;
    if (nan != 0) atomicAdd(&totals_.nan, nan);
    if (positive != 0) atomicAdd(&totals_.positive_infinity, positive);
    if (negative != 0) atomicAdd(&totals_.negative_infinity, negative);
    if (largest != 0) atomicMax(&totals_.largest, static_cast<unsigned long long>(largest));
    if (smallest != 0) atomicMax(&totals_.smallest, static_cast<unsigned long long>(smallest));
    if (squares != 0) atomicAdd(&totals_.squares, squares);
  }

 private:
  __device__ std::uint32_t* words() const { return reinterpret_cast<std::uint32_t*>(bytes_); }

  Totals& totals_;
  unsigned char* bytes_;
  std::uint32_t* doubles_;
};

class Block {
 public:
  __device__ Block(Totals& totals, Row* row) : totals_(totals), row_(row) {}

  /// The counters of the warps lie one behind the other.
  template <typename F, typename Work>
  __device__ void each_warp(const Work& work) {
    const int index = static_cast<int>(threadIdx.x) / lanes;
    Warp warp(totals_, counters + index * Bins<F>::warp_bytes, reinterpret_cast<std::uint32_t*>(counters));
    work(warp);
  }
  template <typename F>
  __device__ void publish(std::uint64_t elements) {
    using Counter = unsigned long long;
    __syncthreads();
    auto* const row = reinterpret_cast<Counter*>(row_);
    Counter* const counts = row + offsetof(Row, counts) / sizeof(Counter);
    auto* const found = Bins<F>::by_match ? reinterpret_cast<std::uint32_t*>(counters) : totals_.counts;
    for (int bin = static_cast<int>(threadIdx.x); bin < Bins<F>::count; bin += warps * lanes) {
      if (found[bin] == 0) continue;
      atomicAdd(counts + bin, static_cast<Counter>(found[bin]));
      found[bin] = 0;
    }
    if (threadIdx.x == 0) {
      atomicAdd(row + offsetof(Row, count) / sizeof(Counter), static_cast<Counter>(elements));
      if (totals_.nan != 0) atomicAdd(row + offsetof(Row, nan) / sizeof(Counter), Counter{totals_.nan});
      if (totals_.positive_infinity != 0) {
        atomicAdd(row + offsetof(Row, positive_infinity) / sizeof(Counter), Counter{totals_.positive_infinity});
      }
      if (totals_.negative_infinity != 0) {
        atomicAdd(row + offsetof(Row, negative_infinity) / sizeof(Counter), Counter{totals_.negative_infinity});
      }
      if (totals_.largest != 0) atomicMax(row + offsetof(Row, largest) / sizeof(Counter), totals_.largest);
      if (totals_.smallest != 0) atomicMax(row + offsetof(Row, smallest) / sizeof(Counter), totals_.smallest);
      if (totals_.squares != 0) atomicAdd(&row_->sum_squares, totals_.squares);
      totals_.nan = totals_.positive_infinity = totals_.negative_infinity = 0;
      totals_.largest = totals_.smallest = 0;
      totals_.squares = 0;
    }
    __syncthreads();
  }

 private:
  Totals& totals_;
  Row* row_;
};

}  // namespace ampscope::stats::cuda
