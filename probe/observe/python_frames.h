// The Python side of the process, where there is one: which line of the user's program runs an op.
//
// Python's functions are looked up at run time; nothing here links to Python. The interpreter's lock is taken only for
// an op whose place is not known yet, and never while a lock of ours is held.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/model.h"

namespace ampscope::observe {

/// Where an op was called from.
struct PythonPlace {
  trace::SourceLine source;
  std::vector<trace::SourceLine> stack;
  bool has_module = false;
  std::string module;
  std::string module_class;
  std::string api;
  std::map<std::string, double> api_arguments;
};

/// Looks the functions up. False when this process has no Python or one too old (before 3.10).
bool python_connect() noexcept;
[[nodiscard]] bool python_connected() noexcept;
/// How often the interpreter was asked for anything.
[[nodiscard]] std::int64_t python_calls() noexcept;
/// "3.11.7"; empty without Python.
[[nodiscard]] std::string python_version();

/// A number that is equal for the same line reached through the same calls and the same modules, and 0 when the calling
/// thread runs no Python code. Takes the interpreter's lock.
[[nodiscard]] std::uint64_t python_stack_hash() noexcept;

/// The place of the calling thread's innermost Python frame. Takes the interpreter's lock and runs Python code of ours.
[[nodiscard]] PythonPlace python_place() noexcept;

/// The identity of the optimizer whose gradients GradScaler is unscaling on this thread, and of the scaler; 0 where
/// they cannot be told.
struct ScalerCall {
  std::uintptr_t scaler = 0;
  std::uintptr_t optimizer = 0;
  std::string scaler_class;
  std::string optimizer_class;
};
[[nodiscard]] ScalerCall python_scaler_call() noexcept;

}  // namespace ampscope::observe
