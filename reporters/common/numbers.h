// How figures are written for people: the same in every report.
#pragma once

#include <cstdint>
#include <string>

namespace ampscope::reporters {

/// "48 211": thousands set apart by a space.
[[nodiscard]] std::string spell_count(std::int64_t count);

/// Three significant digits: "0.736", "48 200", "1.53e-5", "NaN".
[[nodiscard]] std::string spell_quantity(double value);

/// A loss scale: "65536" as people know it, powers of two beyond it and below 1 as "2^17" and "2^-3".
[[nodiscard]] std::string spell_scale(double scale);

/// "12 %" of a share between 0 and 1; "< 0.1 %" rather than a zero that is none.
[[nodiscard]] std::string spell_share(double share);

/// "1 step", "412 steps": the count and the noun, which gets its s.
[[nodiscard]] std::string spell_number_of(std::int64_t count, const char* noun);

/// "3.2 MiB".
[[nodiscard]] std::string spell_bytes(std::uint64_t bytes);

}  // namespace ampscope::reporters
