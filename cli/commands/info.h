#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope info`
[[nodiscard]] Action declare_info(CLI::App& app, Context& context);

}  // namespace ampscope::cli
