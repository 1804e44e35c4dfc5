// "did you mean …?"
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ampscope::cli {

/// The candidate that `word` is most likely a slip of, or "" when none is near: few letters missing, added, changed or
/// swapped, in relation to its length. Upper and lower case count as the same.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean 'report'?", or "" when nothing is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ampscope::cli
