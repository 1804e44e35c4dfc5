// Reads a trace, as much of it as there is.
#pragma once

#include <functional>
#include <string>
#include <variant>

#include "trace/limits.h"
#include "trace/trace.h"

namespace ampscope::trace {

enum class ReadErrorKind {
  cannot_open,  ///< no such file, no permission, a directory
  not_a_trace,  ///< something else, or empty
  too_new,      ///< a newer major version
  damaged,      ///< the header is there, but not one complete frame follows it
};

struct ReadError {
  ReadErrorKind kind = ReadErrorKind::cannot_open;
  std::string message;  ///< one sentence with the path, what is wrong and what to do
};

/// Called now and then with the bytes read so far and the size of the file.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Of a damaged or truncated trace every complete frame is read, and Trace::damage says what was lost. Hostile input
/// (huge lengths, deep nesting, ids out of range) never crashes and never takes more than trace/limits.h allows.
[[nodiscard]] std::variant<Trace, ReadError> read_trace(const std::string& path, const Progress& progress = {},
                                                        const ReadLimits& limits = {});

/// The same from memory; `name` stands for the path in messages.
[[nodiscard]] std::variant<Trace, ReadError> read_trace_bytes(const std::string& bytes, const std::string& name,
                                                              const ReadLimits& limits = {});

/// Whether the file starts like a trace of any version.
[[nodiscard]] bool looks_like_trace(const std::string& path);

}  // namespace ampscope::trace
