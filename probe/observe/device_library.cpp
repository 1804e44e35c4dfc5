#include "probe/observe/device_library.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

namespace ampscope::observe {
namespace {

struct Library {
  stats::OpenStatisticsDevice open = nullptr;
  std::string type;
};

Library load(const std::string& path) {
  Library library;
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return library;
  using TypeOf = const char* (*)();
  const auto type = reinterpret_cast<TypeOf>(dlsym(handle, stats::device_type_entry));
  library.open = reinterpret_cast<stats::OpenStatisticsDevice>(dlsym(handle, stats::device_entry));
  if (type) library.type = type();
  if (!type) library.open = nullptr;
  return library;
}

std::string path_beside_adapter() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&open_statistics_device), &info) == 0 || !info.dli_fname) return "";
  const std::string adapter = info.dli_fname;
  const auto slash = adapter.rfind('/');
  return slash == std::string::npos ? "" : adapter.substr(0, slash + 1) + "libampscope_cuda.so";
}

const Library& library() {
  static const auto* const loaded = [] {
    const char* const given = std::getenv("AMPSCOPE_DEVICE_LIBRARY");
    const std::string path = given ? given : path_beside_adapter();
    return new Library(path.empty() ? Library{} : load(path));
  }();
  return *loaded;
}

/// torch::Stream::native_handle came with torch 2.12; before, libc10_cuda is asked by the name of its own function.
template <typename Stream>
void* handle_of(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    using Handle = void* (*)(const Stream*);
    static const auto handle = reinterpret_cast<Handle>(dlsym(RTLD_DEFAULT, "_ZNK3c104cuda10CUDAStream6streamEv"));
    // A CUDAStream is a Stream and nothing else.
    return handle ? handle(&stream) : nullptr;
  }
}

}  // namespace

bool host_stands_in_for_device() noexcept {
  static const bool stands_in = [] {
    try {
      return std::getenv("AMPSCOPE_DEVICE_LIBRARY") != nullptr && library().open && library().type == "cpu";
    } catch (...) {
      return false;
    }
  }();
  return stands_in;
}

stats::StatisticsDevice* open_statistics_device(c10::Device device, const char** why) noexcept {
  *why = "";
  try {
    if (!library().open || library().type != c10::DeviceTypeName(device.type(), true)) return nullptr;
    return library().open(stats::device_interface_version, device.has_index() ? device.index() : 0, why);
  } catch (...) {
    *why = "out of memory";
    return nullptr;
  }
}

void* current_stream(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  return handle_of(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

}  // namespace ampscope::observe
