// Where the elements of a tensor lie: all that the statistics kernels need to know of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/tensor_stats.h"

namespace ampscope::stats {

/// A borrowed look at memory on the host; nothing is owned and nothing is written.
struct TensorView {
  /// PyTorch allows 64; a tensor with more than this many that is not dense has to be coalesced by the caller.
  static constexpr int max_dims = 16;

  const void* data = nullptr;  ///< the element with all indices 0; null: no element is looked at
  trace::DType dtype = trace::DType::unknown;
  std::int64_t count = 0;  ///< elements, those seen several times (stride 0) counted as often
  int dims = 0;
  std::array<std::int64_t, max_dims> sizes{};
  std::array<std::int64_t, max_dims> strides{};  ///< in elements; may be 0, negative or overlapping
  /// Dense in memory in some order (row-major, channels-last, any permutation): `data` to `data + count` holds every
  /// element once. dims, sizes and strides are not looked at then.
  bool contiguous = true;
};

}  // namespace ampscope::stats
