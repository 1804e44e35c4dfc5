// What a kernel is told: which tensors, and into which rows. Host code without CUDA, tested on any machine.
#pragma once

#include <cstdint>
#include <span>

#include "probe/stats/cpu/formats.h"
#include "probe/stats/cuda/counting.h"
#include "probe/stats/cuda/row.h"
#include "probe/stats/device.h"

namespace ampscope::stats::cuda {

struct Descriptor {
  const void* data = nullptr;
  std::uint64_t count = 0;
  std::uint32_t first_chunk = 0;
  std::uint16_t row = 0;
  Format format = Format::none;  ///< none: no floating type; the bits of the only element are copied
  std::uint8_t element_bytes = 0;
};

/// A parameter of the kernel, so it travels with the launch: no copy to the device, no memory to keep until it ran.
struct Batch {
  Descriptor tensors[StatisticsDevice::max_batch];
  std::uint32_t count = 0;
  std::uint32_t chunks = 0;
};
static_assert(sizeof(Batch) <= 4000, "parameters of a kernel take at most 4 KiB on every device");

enum class Shape : std::uint8_t { dense, strided, unsupported };

/// The tensor with what is repeated left out (dimensions of stride 0) and dimensions that follow one another merged.
/// `descriptor.count` is what is left; complex elements are two reals each.
[[nodiscard]] Shape describe(const TensorView& view, Descriptor& descriptor, Geometry& geometry) noexcept;

/// Rows that a result in that format takes.
[[nodiscard]] int rows_of(Format format) noexcept;
/// Chunks that a dense tensor is looked at in; at least 1.
[[nodiscard]] std::uint32_t chunks_of(const Descriptor& descriptor) noexcept;

/// Adds a tensor that is dense to the batch.
void add(Batch& batch, Descriptor descriptor, int row) noexcept;
/// Bytes of shared memory that a block needs for its counters.
[[nodiscard]] std::size_t counter_bytes(const Batch& batch) noexcept;
inline constexpr std::size_t largest_counter_bytes = static_cast<std::size_t>(warps) * Bins<Float32>::warp_bytes;

/// Adds a row to the statistics of `view`, from which it was made.
void read_row(const Row& row, const TensorView& view, FlatStats& into) noexcept;

}  // namespace ampscope::stats::cuda
