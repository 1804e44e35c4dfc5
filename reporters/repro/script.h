// A small program that shows one finding's fault alone.
#pragma once

#include <string>

#include "analyzers/core/finding.h"

namespace ampscope::reporters {

/// Python source that loads `arguments_file` (beside itself, as the probe kept it), runs the operator as the training
/// did, and again in fp32 and fp64. It ends with status 0 when the fault shows and the higher precision says of it what
/// the finding says, and with 1 otherwise.
[[nodiscard]] std::string repro_script(const analyzers::Finding& finding, const std::string& working_directory,
                                       const std::string& arguments_file);

}  // namespace ampscope::reporters
