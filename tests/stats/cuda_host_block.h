// The block of probe/stats/cuda/counting.h made of loops: one lane after the other does what on a device all do at
// once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "probe/stats/cuda/batch.h"
#include "probe/stats/cuda/counting.h"

namespace ampscope::stats::cuda {

class HostWarp {
 public:
  HostWarp(Row* row, int index, std::vector<std::uint8_t>& bytes) : row_(row), index_(index), bytes_(bytes) {}

  [[nodiscard]] int index() const { return index_; }
  template <typename T>
  std::array<T, lanes> per_lane() const {
    return {};
  }
  template <typename Work>
  void each_lane(const Work& work) {
    for (int lane = 0; lane < lanes; ++lane)
      work(lane);
  }
  template <typename F>
  void count(int lane, int bin) {
    if constexpr (Bins<F>::by_match) {
      ++counts()[bin];
    } else {
      std::uint8_t& counter = bytes_.at(static_cast<std::size_t>(byte_of(lane, bin)));
      if (counter == 255) overflowed = true;
      ++counter;
    }
  }
  [[nodiscard]] std::uint32_t counter_word(int word, int lane) const {
    std::uint32_t value = 0;
    std::memcpy(&value, &bytes_[static_cast<std::size_t>((word * lanes + lane) * 4)], 4);
    return value;
  }
  void clear_word(int word, int lane) {
    std::memset(&bytes_[static_cast<std::size_t>((word * lanes + lane) * 4)], 0, 4);
  }
  template <typename Ask>
  bool any(const Ask& ask) const {
    for (int lane = 0; lane < lanes; ++lane) {
      if (ask(lane)) return true;
    }
    return false;
  }
  template <typename Value>
  std::uint32_t sum(const Value& value) const {
    std::uint32_t total = 0;
    for (int lane = 0; lane < lanes; ++lane)
      total += value(lane);
    return total;
  }
  void add(int bin, std::uint32_t elements) {
    if (elements != 0) counts()[bin] += elements;
  }
  template <typename F>
  void merge(const std::array<Lane<F>, lanes>& state) {
    using Rank = typename Lane<F>::Rank;
    constexpr Rank all = static_cast<Rank>((F::sign_bit - 1) | F::sign_bit);
    for (const Lane<F>& lane : state) {
      row_->nan += lane.nan;
      row_->positive_infinity += lane.positive_infinity;
      row_->negative_infinity += lane.negative_infinity;
      row_->sum_squares += lane.squares;
      if (lane.largest < lane.smallest) continue;
      row_->largest = std::max<std::uint64_t>(row_->largest, lane.largest + 1);
      row_->smallest = std::max<std::uint64_t>(row_->smallest, all - lane.smallest + 1);
    }
  }

  bool overflowed = false;

 private:
  std::uint64_t* counts() { return reinterpret_cast<std::uint64_t*>(row_) + offsetof(Row, counts) / 8; }

  Row* row_;
  int index_;
  std::vector<std::uint8_t>& bytes_;
};

class HostBlock {
 public:
  explicit HostBlock(Row* row) : row_(row) {}

  template <typename F, typename Work>
  void each_warp(const Work& work) {
    for (int index = 0; index < warps; ++index) {
      HostWarp warp(row_, index, bytes_);
      work(warp);
      overflowed |= warp.overflowed;
    }
    left_over |= std::any_of(bytes_.begin(), bytes_.end(), [](std::uint8_t byte) { return byte != 0; });
  }
  template <typename F>
  void publish(std::uint64_t elements) {
    row_->count += elements;
  }

  bool overflowed = false;  ///< a byte counter went over its end
  bool left_over = false;   ///< counters were not clear at the end

 private:
  Row* row_;
  std::vector<std::uint8_t> bytes_ = std::vector<std::uint8_t>(Bins<Float32>::warp_bytes);
};

/// What a kernel would find, chunk after chunk.
struct HostLook {
  FlatStats stats;
  bool supported = false;
  bool sound = true;  ///< no counter overflowed and none was left over
};

inline std::unique_ptr<HostLook> look_on_host(const TensorView& view) {
  auto result = std::make_unique<HostLook>();
  Descriptor descriptor;
  Geometry geometry;
  const Shape shape = describe(view, descriptor, geometry);
  result->supported = shape != Shape::unsupported;
  if (!result->supported) return result;
  std::vector<Row> rows(static_cast<std::size_t>(rows_of(descriptor.format)), Row{});
  HostBlock block(rows.data());
  if (descriptor.format == Format::none) {
    std::memcpy(&rows[0].value, descriptor.data, descriptor.element_bytes);
    rows[0].count = 1;
  }
  with_layout(descriptor.format, [&](auto layout) {
    using F = decltype(layout);
    const Piece piece{descriptor.data, descriptor.count};
    if (shape == Shape::dense) {
      const std::uint32_t chunks = chunks_of(descriptor);
      for (std::uint32_t chunk = 0; chunk < chunks; ++chunk)
        look_at_chunk<F>(block, piece, chunk, chunks);
    } else {
      for (std::uint64_t chunk = 0; chunk * strided_chunk < descriptor.count; ++chunk)
        look_at_strided<F>(block, piece, geometry, chunk);
    }
  });
  result->sound = !block.overflowed && !block.left_over;
  read_row(rows[0], view, result->stats);
  return result;
}

}  // namespace ampscope::stats::cuda
