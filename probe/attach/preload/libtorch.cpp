#include "probe/attach/preload/libtorch.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

namespace ampscope::attach {
namespace {

constexpr char library_name[] = "libtorch_cpu.so";

const char* file_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

int keep_if_libtorch(dl_phdr_info* object, size_t, void* path) {
  if (!object->dlpi_name) return 0;
  const unsigned long length = strlen(object->dlpi_name);
  // Debian adds the version: libtorch_cpu.so.2.14.
  if (strncmp(file_name(object->dlpi_name), library_name, sizeof library_name - 1) != 0) return 0;
  if (length >= path_size) return 0;
  memcpy(path, object->dlpi_name, length + 1);
  return 1;
}

/// "2.14" or "2.14.1" at the start of `text`.
bool parse_version(const char* text, int& major, int& minor) {
  auto number = [&text](int& value) {
    if (*text < '0' || *text > '9') return false;
    for (value = 0; *text >= '0' && *text <= '9' && value < 10000; ++text)
      value = value * 10 + (*text - '0');
    return true;
  };
  return number(major) && *text++ == '.' && number(minor);
}

/// A handle to a library that is loaded already. Closing it is not needed: it is never unloaded.
void* loaded(const char* path) {
  return dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace

bool find_libtorch(char* path) {
  // Not dlopen(RTLD_NOLOAD): for a name that is not loaded it goes through the library search path, file by file.
  return dl_iterate_phdr(keep_if_libtorch, path) != 0;
}

bool libtorch_version(const char* path, int& major, int& minor) {
  if (void* handle = loaded(path)) {
    // What the library says of itself: major, minor and patch in the three highest bytes.
    if (auto* abi_version = reinterpret_cast<uint64_t (*)()>(dlsym(handle, "aoti_torch_abi_version"))) {
      const uint64_t version = abi_version();
      major = static_cast<int>(version >> 56);
      minor = static_cast<int>((version >> 48) & 0xff);
      return true;
    }
  }
  const char* extension = strstr(file_name(path), ".so.");
  return extension && parse_version(extension + 4, major, minor);
}

void* real_symbol(const char* symbol) {
  if (void* next = dlsym(RTLD_NEXT, symbol)) return next;
  // Python loads libtorch with RTLD_LOCAL, where RTLD_NEXT does not look.
  char path[path_size];
  void* handle = find_libtorch(path) ? loaded(path) : nullptr;
  return handle ? dlsym(handle, symbol) : nullptr;
}

}  // namespace ampscope::attach
