#include "probe/stats/kernels.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "probe/stats/cpu/kernel_paths.h"

namespace ampscope::stats {

namespace {

// Best first.
const KernelPath* const paths[] = {
#if defined(AMPSCOPE_X86_KERNELS)
    &avx512_path, &avx2_path,
#endif
    &scalar_path};

// The compiler's run-time library has asked cpuid, and the system whether it keeps the registers, once at load time.
bool runs_here(const KernelPath& path) {
#if defined(AMPSCOPE_X86_KERNELS)
  __builtin_cpu_init();
  // Every processor with AVX2 and FMA also has F16C, POPCNT and BMI, and some compilers cannot ask for F16C.
  if ((&path == &avx2_path || &path == &avx512_path) &&
      (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))) {
    return false;
  }
  if (&path == &avx512_path) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
#endif
  static_cast<void>(path);
  return true;
}

const KernelPath& choose() {
  const char* wanted = std::getenv("AMPSCOPE_KERNELS");
  bool reached = wanted == nullptr || wanted[0] == '\0';
  for (const KernelPath* path : paths) {
    reached = reached || std::strcmp(path->name, wanted) == 0;
    if (reached && runs_here(*path)) return *path;
  }
  return scalar_path;
}

// Constant-initialised: a hook may run before or after the constructors of this library.
constinit std::atomic<const KernelPath*> chosen{nullptr};

// Rounds towards zero, so that a finite magnitude stays finite.
float as_float(std::uint64_t magnitude, Format format) {
  double value = 0;
  bool infinite = false;
  with_layout(format, [&](auto layout) {
    using Layout = decltype(layout);
    const auto bits = static_cast<typename Layout::Bits>(magnitude);
    infinite = Layout::is_infinity(bits);
    if (!infinite) value = Layout::value(bits);
  });
  if (infinite) return std::numeric_limits<float>::infinity();
  const auto wide = __builtin_bit_cast(std::uint64_t, value);
  const int exponent = static_cast<int>(wide >> 52) - 1023;
  if (exponent > 127) return std::numeric_limits<float>::max();
  const std::uint64_t significand = (wide & ((std::uint64_t{1} << 52) - 1)) | std::uint64_t{1} << 52;
  if (exponent < -149) return 0;
  if (exponent < -126) return __builtin_bit_cast(float, static_cast<std::uint32_t>(significand >> (-97 - exponent)));
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(exponent + 127) << 23 |
                                       (static_cast<std::uint32_t>(significand >> 29) & 0x7fffffU));
}

}  // namespace

const KernelPath* find_path(const char* name) noexcept {
  for (const KernelPath* path : paths) {
    if (std::strcmp(path->name, name) == 0) return runs_here(*path) ? path : nullptr;
  }
  return nullptr;
}

const KernelPath& active_path() noexcept {
  const KernelPath* path = chosen.load(std::memory_order_relaxed);
  if (path == nullptr) {
    // Two threads may both get here; they choose the same.
    path = &choose();
    chosen.store(path, std::memory_order_relaxed);
  }
  return *path;
}

void accumulate(const KernelPath& path, const TensorView& view, FlatStats& into) noexcept {
  Runs runs(view, Runs::Repeats::each);
  if (runs.format() != Format::none) path.accumulate(runs, into);
}

Sentinel check_nonfinite(const KernelPath& path, const TensorView& view) noexcept {
  Runs runs(view, Runs::Repeats::once);
  if (runs.format() == Format::none) return {};
  const LargestMagnitude largest = path.largest_magnitude(runs);
  return {largest.nonfinite, as_float(largest.bits, runs.format())};
}

NonfiniteCount count_nonfinite(const KernelPath& path, const TensorView& view) noexcept {
  Runs runs(view, Runs::Repeats::once);
  if (runs.format() == Format::none) return {};
  NonfiniteCount count = path.count_nonfinite(runs);
  count.nan *= runs.repeats();
  count.positive_infinity *= runs.repeats();
  count.negative_infinity *= runs.repeats();
  return count;
}

void accumulate(const TensorView& view, FlatStats& into) noexcept {
  accumulate(active_path(), view, into);
}

Sentinel check_nonfinite(const TensorView& view) noexcept {
  return check_nonfinite(active_path(), view);
}

NonfiniteCount count_nonfinite(const TensorView& view) noexcept {
  return count_nonfinite(active_path(), view);
}

const char* kernel_path() noexcept {
  return active_path().name;
}

}  // namespace ampscope::stats
