// A cheap clock for durations inside one process.
#pragma once

#include <cstdint>

namespace ampscope::observe {

/// The processor's time-stamp counter where there is one, else nanoseconds.
[[nodiscard]] std::uint64_t ticks() noexcept;
/// Converts with the rate measured by calibrate_ticks.
[[nodiscard]] std::int64_t ticks_to_ns(std::uint64_t ticks) noexcept;
[[nodiscard]] std::int64_t ns_to_ticks(double nanoseconds) noexcept;
/// Measures the counter against the system's clock for about a millisecond. Once, before observation begins.
void calibrate_ticks() noexcept;

}  // namespace ampscope::observe
