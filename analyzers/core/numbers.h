// How numbers are written for people: three significant digits, thousands set apart by a space, powers of two where a
// loss scale is meant, percentages for shares.
#pragma once

#include <cstdint>
#include <string>

namespace ampscope::analyzers {

/// "48 211", "0.736", "0.0000153", "3.4e38", "NaN", "-Infinity": three significant digits, all digits of a whole part.
[[nodiscard]] std::string number(double value);

/// "1 234 567": exact.
[[nodiscard]] std::string count_of(std::int64_t value);

/// "2^16" for a power of two beyond ±2^4, number() otherwise.
[[nodiscard]] std::string scale(double value);

/// "12.3 %", "0.04 %", "< 0.01 %"; never 100 % or 0 % for a share that is not.
[[nodiscard]] std::string share(double value);

/// "1 step", "12 steps".
[[nodiscard]] std::string plural(std::int64_t value, const char* noun);

/// "step 7", "steps 3–19".
[[nodiscard]] std::string step_range(std::int64_t first, std::int64_t last);

}  // namespace ampscope::analyzers
