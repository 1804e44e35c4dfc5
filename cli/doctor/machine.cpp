#include "cli/doctor/machine.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include <dlfcn.h>
#include <fmt/format.h>

#include "cli/process/program.h"
#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <typename Function>
Function* symbol(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library.get(), name));
}

/// The newest CUPTI in the environment of torch, whose wheels bring it: nvidia/<package>/lib beside the torch package.
std::string cupti_beside(const std::string& torch_package) {
  std::string newest;
  std::error_code error;
  const fs::path root = fs::path(torch_package).parent_path() / "nvidia";
  for (fs::directory_iterator package(root, error); !error && package != fs::directory_iterator();
       package.increment(error)) {
    std::error_code ignored;
    for (const fs::path& folder : {package->path() / "lib", package->path() / "extras" / "CUPTI" / "lib64"}) {
      for (const auto& file : fs::directory_iterator(folder, ignored)) {
        if (file.path().filename().string().starts_with("libcupti.so")) newest = std::max(newest, file.path().string());
      }
    }
  }
  return newest;
}

void ask_driver(Cuda& cuda) {
  const Library driver(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!driver) return;
  auto* const init = symbol<int(unsigned)>(driver, "cuInit");
  auto* const version = symbol<int(int*)>(driver, "cuDriverGetVersion");
  auto* const count = symbol<int(int*)>(driver, "cuDeviceGetCount");
  auto* const name = symbol<int(char*, int, int)>(driver, "cuDeviceGetName");
  if (init == nullptr || version == nullptr || count == nullptr || name == nullptr) return;
  int release = 0;
  if (version(&release) == 0) cuda.driver = fmt::format("{}.{}", release / 1000, release % 1000 / 10);
  int devices = 0;
  if (init(0) != 0 || count(&devices) != 0) return;
  for (int device = 0; device < devices; ++device) {
    std::array<char, 128> text{};
    if (name(text.data(), static_cast<int>(text.size()) - 1, device) == 0) cuda.devices.emplace_back(text.data());
  }
}

}  // namespace

Processor find_processor() {
  constexpr std::array<std::string_view, 12> interesting = {"f16c",        "fma",         "bmi2",     "avx2",
                                                            "avx512f",     "avx512bw",    "avx512dq", "avx512vl",
                                                            "avx512_bf16", "avx512_fp16", "amx_bf16", "amx_fp16"};
  Processor processor;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = reporters::trim(std::string_view(line).substr(0, colon));
    const std::string_view value = reporters::trim(std::string_view(line).substr(colon + 1));
    if (key == "model name" && processor.model.empty()) processor.model = value;
    if (key == "flags" && processor.features.empty()) {
      std::istringstream words{std::string(value)};
      for (std::string word; words >> word;) {
        if (std::find(interesting.begin(), interesting.end(), word) != interesting.end())
          processor.features.push_back(word);
      }
    }
  }
  return processor;
}

Cuda find_cuda(const std::string& torch_package) {
  Cuda cuda;
  ask_driver(cuda);
  if (!torch_package.empty()) cuda.cupti = cupti_beside(torch_package);
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    if (cuda.cupti.empty() && Library(dlopen(name, RTLD_LAZY | RTLD_LOCAL))) cuda.cupti = name;
  }
  cuda.nvcc = find_program("nvcc").value_or(find_program("/usr/local/cuda/bin/nvcc").value_or(""));
  return cuda;
}

}  // namespace ampscope::cli
