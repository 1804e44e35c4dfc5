// CBOR to records: the inverse of trace/encode.h, for input that may be anything.
#pragma once

#include <string_view>
#include <vector>

#include "trace/limits.h"
#include "trace/schema.h"

namespace ampscope::trace {

struct DecodeContext {
  Budget& memory;
  int depth;              ///< of items inside one another
  bool damaged = false;   ///< set when a value was out of its range and was left out
  bool too_much = false;  ///< set when the memory of the trace was used up
};

/// Reads the map of fields of one record. Unknown fields are skipped and absent ones keep their default.
/// False: a field has a wrong type or the budget is used up, and `record` is of no use.
template <class T>
[[nodiscard]] bool decode_record(std::string_view fields, DecodeContext& context, T& record);

/// Reads the map of columns of many records and appends these to `rows`. False: as above, and `rows` is unchanged.
template <class T>
[[nodiscard]] bool decode_columns(std::string_view fields, DecodeContext& context, std::vector<T>& rows);

}  // namespace ampscope::trace
