#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope rules`
[[nodiscard]] Action declare_rules(CLI::App& app, Context& context);

}  // namespace ampscope::cli
