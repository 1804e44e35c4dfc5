// The numbers that a call was given beside its tensors.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "trace/model.h"

namespace ampscope::analyzers {

/// The number that a call (a Site, or one call of it as a NonfiniteEvent) was given for the argument `name`.
template <typename Call>
[[nodiscard]] std::optional<double> scalar_named(const Call& call, std::string_view name) {
  const auto found = std::find(call.scalar_names.begin(), call.scalar_names.end(), name);
  if (found == call.scalar_names.end()) return std::nullopt;  // Not all numbers need have a name.
  const auto at = static_cast<std::size_t>(found - call.scalar_names.begin());
  return at < call.scalars.size() ? std::optional<double>(call.scalars[at]) : std::nullopt;
}

/// The one number by which a call multiplies its tensors, a division as the inverse; 0 where it does something else, or
/// multiplies by more than one number, or by a tensor.
[[nodiscard]] double factor_of(const trace::Site& site) noexcept;

}  // namespace ampscope::analyzers
