// The folder of `run --repro`: the arguments of the call in which a value was born, and a program that shows the fault.
#pragma once

#include <string>

#include "analyzers/core/report.h"

namespace ampscope::cli {

/// Makes the folder and empties it of an earlier bundle when `force` is given; returns its absolute path. Throws
/// UserError when it holds an earlier bundle, or cannot be made or written.
[[nodiscard]] std::string prepare_repro_folder(const std::string& folder, bool force);

/// Keeps of the calls that the probe left in `folder` the one that the first finding with such a call is about, as
/// inputs.pt, and writes repro.py beside it. Returns a sentence that says what to do with it, or why there is none.
[[nodiscard]] std::string finish_repro_folder(const std::string& folder, const analyzers::Report& report);

}  // namespace ampscope::cli
