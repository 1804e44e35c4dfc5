// Statistics of the elements of a tensor in host memory: what the hooks call on the training threads.
//
// Nothing here allocates, throws, locks, writes to the tensor or changes the floating-point environment. Elements are
// looked at as integers, so that neither a signalling NaN nor a thread that treats subnormals as zero
// (torch.set_flush_denormal) makes a difference; only sum_squares is floating-point arithmetic.
//
// Looked at: fp16, bf16, fp32, fp64, the four fp8 types, complex64 and complex128 (as twice as many reals). A tensor of
// any other type has no statistics: accumulate() leaves `into` as it is and the checks say "finite".
#pragma once

#include <cstdint>

#include "probe/stats/flat_stats.h"
#include "probe/stats/tensor_view.h"

namespace ampscope::stats {

/// Adds the exact statistics of all elements to `into`, in one pass over memory. sum_squares is summed in double in an
/// order that depends on the kernel path; everything else is the same on every path.
void accumulate(const TensorView& view, FlatStats& into) noexcept;

struct Sentinel {
  bool nonfinite = false;  ///< there is a NaN or an infinity
  /// Largest magnitude that is not NaN, infinity included; 0 when there is none. fp64 values are cut to a float towards
  /// zero, so infinity here always is an infinity in the tensor.
  float absmax = 0;
};
/// Is there any NaN or infinity? Runs near the speed of reading memory.
[[nodiscard]] Sentinel check_nonfinite(const TensorView& view) noexcept;

struct NonfiniteCount {
  std::uint64_t nan = 0;
  std::uint64_t positive_infinity = 0;
  std::uint64_t negative_infinity = 0;
};
[[nodiscard]] NonfiniteCount count_nonfinite(const TensorView& view) noexcept;

/// The instructions in use: "avx512", "avx2" or "scalar". The best the processor has; the environment variable
/// AMPSCOPE_KERNELS=scalar|avx2|avx512, read at the first use, asks for less. What the processor lacks is never used.
[[nodiscard]] const char* kernel_path() noexcept;

}  // namespace ampscope::stats
