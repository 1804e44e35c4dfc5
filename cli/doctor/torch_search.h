// The torch that a Python program would import here, found without importing it.
#pragma once

#include <string>

namespace ampscope::cli {

struct TorchSearch {
  std::string python;  ///< path of the interpreter that was asked, "" when there is none
  std::string python_version;
  std::string prefix;   ///< sys.prefix: the environment it belongs to
  std::string package;  ///< folder of the torch package, "" when there is none
  std::string version;  ///< "2.13.0+cpu"
  std::string cuda;     ///< CUDA release it was built for, "" for none
  std::string error;    ///< why the interpreter gave no answer
};

/// Asks `python`, or, when it is "", the python3 or python on PATH, which is that of the active virtual environment.
[[nodiscard]] TorchSearch find_torch(const std::string& python);

struct TorchMinor {
  int major = 0;
  int minor = 0;
  [[nodiscard]] bool supported() const { return major == 2 && minor >= 11 && minor <= 15; }
};

/// The first two numbers of a version; zeros when it has none.
[[nodiscard]] TorchMinor torch_minor(const std::string& version);

}  // namespace ampscope::cli
