// Launching the kernels. For the files that nvcc's host compiler sees.
#pragma once

#include <cstddef>

#include <driver_types.h>

#include "probe/stats/cuda/batch.h"

namespace ampscope::stats::cuda {

/// Lets the kernels have the shared memory that they need on the current device, and says how many blocks with the
/// largest need run on one multiprocessor at a time.
[[nodiscard]] cudaError_t allow_counters(std::size_t& blocks_an_sm) noexcept;

/// `rows`: those of a slot, all zero where results will go.
[[nodiscard]] cudaError_t launch(const Batch& batch, Row* rows, std::size_t most_blocks, cudaStream_t stream) noexcept;
/// A tensor that is not dense.
[[nodiscard]] cudaError_t launch(const Descriptor& tensor, const Geometry& geometry, Row* rows, std::size_t most_blocks,
                                 cudaStream_t stream) noexcept;

}  // namespace ampscope::stats::cuda
