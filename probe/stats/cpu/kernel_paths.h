// The implementations of the kernels, one a set of processor instructions.
#pragma once

#include <cstdint>

#include "probe/stats/cpu/runs.h"
#include "probe/stats/flat_stats.h"
#include "probe/stats/kernels.h"

namespace ampscope::stats {

struct LargestMagnitude {
  std::uint64_t bits = 0;  ///< largest magnitude that is not NaN, as the bits of the format without the sign
  bool nonfinite = false;
};

/// One implementation. `runs` is never of Format::none.
struct KernelPath {
  const char* name;
  void (*accumulate)(Runs& runs, FlatStats& into) noexcept;
  LargestMagnitude (*largest_magnitude)(Runs& runs) noexcept;
  NonfiniteCount (*count_nonfinite)(Runs& runs) noexcept;
};

/// Plain code for any processor; the reference for the others.
extern const KernelPath scalar_path;
#if defined(AMPSCOPE_X86_KERNELS)
extern const KernelPath avx2_path;
extern const KernelPath avx512_path;
#endif

/// The path of that name; null when there is none or when this processor cannot run it.
[[nodiscard]] const KernelPath* find_path(const char* name) noexcept;
/// The path in use, see kernel_path().
[[nodiscard]] const KernelPath& active_path() noexcept;

void accumulate(const KernelPath& path, const TensorView& view, FlatStats& into) noexcept;
[[nodiscard]] Sentinel check_nonfinite(const KernelPath& path, const TensorView& view) noexcept;
[[nodiscard]] NonfiniteCount count_nonfinite(const KernelPath& path, const TensorView& view) noexcept;

}  // namespace ampscope::stats
