#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope tune`
[[nodiscard]] Action declare_tune(CLI::App& app, Context& context);

}  // namespace ampscope::cli
