#include "probe/observe/ticks.h"

#include "probe/record/recorder.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace ampscope::observe {
namespace {
double ns_per_tick = 1;
}

std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(record::monotonic_ns());
#endif
}

std::int64_t ticks_to_ns(std::uint64_t ticks) noexcept {
  return static_cast<std::int64_t>(static_cast<double>(ticks) * ns_per_tick);
}

std::int64_t ns_to_ticks(double nanoseconds) noexcept {
  return static_cast<std::int64_t>(nanoseconds / ns_per_tick);
}

void calibrate_ticks() noexcept {
#if defined(__x86_64__)
  const std::int64_t start_ns = record::monotonic_ns();
  const std::uint64_t start = ticks();
  std::int64_t now_ns = start_ns;
  while (now_ns - start_ns < 1'000'000)
    now_ns = record::monotonic_ns();
  const std::uint64_t elapsed = ticks() - start;
  if (elapsed > 0) ns_per_tick = static_cast<double>(now_ns - start_ns) / static_cast<double>(elapsed);
#endif
}

}  // namespace ampscope::observe
