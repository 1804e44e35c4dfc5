// The libtorch of this process: whether it is mapped, its version, its symbols.
#pragma once

namespace ampscope::attach {

inline constexpr unsigned long path_size = 4096;

/// Path of the mapped libtorch_cpu, in `path` (path_size bytes). False where this process has none (yet).
bool find_libtorch(char* path);

/// Major and minor version of the libtorch at `path`. False where it does not say.
bool libtorch_version(const char* path, int& major, int& minor);

/// Address of `symbol` in the libtorch of this process, wherever it was loaded into; null where there is none. For
/// symbols that this library defines itself: never gives that definition.
void* real_symbol(const char* symbol);

}  // namespace ampscope::attach
