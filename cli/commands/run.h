#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope run`
[[nodiscard]] Action declare_run(CLI::App& app, Context& context);

}  // namespace ampscope::cli
