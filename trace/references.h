// Makes every id of a trace safe to follow.
#pragma once

#include <cstdint>

#include "trace/limits.h"
#include "trace/trace.h"

namespace ampscope::trace {

/// Grows `table` with placeholders until it has an entry `id`. False: the memory does not allow it, or id is negative.
template <class T>
[[nodiscard]] bool grow(std::vector<T>& table, std::int64_t id, Budget& memory) {
  if (id < 0) return false;
  const auto size = static_cast<std::size_t>(id) + 1;
  if (size <= table.size()) return true;
  if (!memory.take((size - table.size()) * sizeof(T))) return false;
  const std::size_t before = table.size();
  table.resize(size);
  for (std::size_t i = before; i < size; ++i) {
    if constexpr (requires(T entry) { entry.id; }) {
      table[i].id = static_cast<std::int64_t>(i);
    } else {
      table[i].site = static_cast<std::int64_t>(i);
    }
  }
  return true;
}

/// Gives every id that is referred to an entry in its table, or makes it `none` where that cannot be; drops rows that
/// belong to nothing; breaks circles of enclosing sites. Returns the number of ids and rows that were changed so.
[[nodiscard]] std::uint64_t resolve_references(Trace& trace, Budget& memory);

}  // namespace ampscope::trace
