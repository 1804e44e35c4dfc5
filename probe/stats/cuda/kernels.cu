#include <algorithm>

#include <cuda_runtime_api.h>

#include "probe/stats/cuda/block.cuh"
#include "probe/stats/cuda/kernels.h"

namespace ampscope::stats::cuda {
namespace {

__device__ void clear_shared(Totals& totals, std::uint32_t counter_words) {
  for (std::uint32_t i = threadIdx.x; i < counter_words; i += warps * lanes)
    reinterpret_cast<std::uint32_t*>(counters)[i] = 0;
  for (std::uint32_t i = threadIdx.x; i < sizeof totals / 4; i += warps * lanes)
    reinterpret_cast<std::uint32_t*>(&totals)[i] = 0;
  __syncthreads();
}

/// The bits of a tensor of one element that is no floating type.
__device__ void copy_value(const Descriptor& tensor, Row& row) {
  if (threadIdx.x != 0) return;
  std::uint64_t bits = 0;
  for (int i = 0; i < tensor.element_bytes; ++i)
    bits |= static_cast<std::uint64_t>(static_cast<const unsigned char*>(tensor.data)[i]) << (8 * i);
  row.value = bits;
  row.count = 1;
}

__global__ void __launch_bounds__(warps* lanes, 3)
    look_at_batch(const __grid_constant__ Batch batch, Row* rows, std::uint32_t counter_words) {
  __shared__ Totals totals;
  clear_shared(totals, counter_words);
  for (std::uint32_t chunk = blockIdx.x; chunk < batch.chunks; chunk += gridDim.x) {
    std::uint32_t low = 0;
    std::uint32_t high = batch.count;
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (batch.tensors[middle].first_chunk <= chunk ? low : high) = middle;
    }
    const Descriptor& tensor = batch.tensors[low];
    Row* const row = rows + tensor.row;
    if (tensor.format == Format::none) {
      copy_value(tensor, *row);
      continue;
    }
    const std::uint32_t end = low + 1 < batch.count ? batch.tensors[low + 1].first_chunk : batch.chunks;
    Block block(totals, row);
    with_layout(tensor.format, [&](auto layout) {
      look_at_chunk<decltype(layout)>(block, Piece{tensor.data, tensor.count}, chunk - tensor.first_chunk,
                                      end - tensor.first_chunk);
    });
  }
}

__global__ void __launch_bounds__(warps* lanes, 3)
    look_at_one(const __grid_constant__ Descriptor tensor, const __grid_constant__ Geometry geometry, Row* rows,
                std::uint32_t counter_words) {
  __shared__ Totals totals;
  clear_shared(totals, counter_words);
  const std::uint64_t chunks = (tensor.count + strided_chunk - 1) / strided_chunk;
  Block block(totals, rows + tensor.row);
  for (std::uint64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    with_layout(tensor.format, [&](auto layout) {
      look_at_strided<decltype(layout)>(block, Piece{tensor.data, tensor.count}, geometry, chunk);
    });
  }
}

}  // namespace

cudaError_t allow_counters(std::size_t& blocks_an_sm) noexcept {
  constexpr int bytes = static_cast<int>(largest_counter_bytes);
  for (const void* kernel :
       {reinterpret_cast<const void*>(look_at_batch), reinterpret_cast<const void*>(look_at_one)}) {
    if (const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        error != cudaSuccess) {
      return error;
    }
  }
  int blocks = 0;
  const cudaError_t error =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, look_at_batch, warps * lanes, largest_counter_bytes);
  blocks_an_sm = static_cast<std::size_t>(std::max(1, blocks));
  return error;
}

cudaError_t launch(const Batch& batch, Row* rows, std::size_t most_blocks, cudaStream_t stream) noexcept {
  const std::size_t bytes = counter_bytes(batch);
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>(batch.chunks, most_blocks));
  look_at_batch<<<blocks, warps * lanes, bytes, stream>>>(batch, rows, static_cast<std::uint32_t>(bytes / 4));
  return cudaGetLastError();
}

cudaError_t launch(const Descriptor& tensor, const Geometry& geometry, Row* rows, std::size_t most_blocks,
                   cudaStream_t stream) noexcept {
  Batch batch;
  add(batch, tensor, tensor.row);
  const std::size_t bytes = counter_bytes(batch);
  const std::uint64_t chunks = (tensor.count + strided_chunk - 1) / strided_chunk;
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(chunks, 1, most_blocks));
  look_at_one<<<blocks, warps * lanes, bytes, stream>>>(tensor, geometry, rows, static_cast<std::uint32_t>(bytes / 4));
  return cudaGetLastError();
}

}  // namespace ampscope::stats::cuda
