#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope explain`
[[nodiscard]] Action declare_explain(CLI::App& app, Context& context);

}  // namespace ampscope::cli
