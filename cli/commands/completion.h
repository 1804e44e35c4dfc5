#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope completion`
[[nodiscard]] Action declare_completion(CLI::App& app, Context& context);

}  // namespace ampscope::cli
