// What add_rule() generates: the rules of this build and their pages. For the registry only.
#pragma once

#include <span>
#include <string_view>

#include "analyzers/core/rule.h"

namespace ampscope::analyzers {

/// Ordered by code.
[[nodiscard]] std::span<const Rule* const> rule_table() noexcept;
/// Parallel to rule_table().
[[nodiscard]] std::span<const std::string_view> rule_pages() noexcept;

}  // namespace ampscope::analyzers
