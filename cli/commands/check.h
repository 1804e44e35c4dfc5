#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope check`
[[nodiscard]] Action declare_check(CLI::App& app, Context& context);

}  // namespace ampscope::cli
