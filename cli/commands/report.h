#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope report`
[[nodiscard]] Action declare_report(CLI::App& app, Context& context);

}  // namespace ampscope::cli
