// What this machine brings: instruction sets for the statistics kernels, a GPU, NVIDIA's tools.
#pragma once

#include <string>
#include <vector>

namespace ampscope::cli {

struct Processor {
  std::string model;
  std::vector<std::string> features;  ///< those that low precision and the kernels care for
};

[[nodiscard]] Processor find_processor();

struct Cuda {
  std::string driver;  ///< CUDA release the driver supports: "13.0"; "" when there is no driver
  std::vector<std::string> devices;
  std::string cupti;  ///< file name of the library that was found, "" for none
  std::string nvcc;   ///< path, "" for none
};

/// Loads the driver and CUPTI as the probe does, with dlopen. `torch_package`: folder of the torch package, whose
/// environment may hold CUPTI, or "".
[[nodiscard]] Cuda find_cuda(const std::string& torch_package);

}  // namespace ampscope::cli
