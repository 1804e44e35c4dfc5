// Records to CBOR, as docs/trace-format.md describes them.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "trace/schema.h"

namespace ampscope::trace {

/// Appends one record: [kind, {field: value …}]. Fields that hold their default are left out.
template <class T>
void encode_record(std::string& out, const T& record);

/// Appends one record that holds all of `rows` as columns: [kind, {field: column …}].
template <class T>
void encode_columns(std::string& out, std::span<const T> rows);

}  // namespace ampscope::trace
