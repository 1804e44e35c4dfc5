#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope version`
[[nodiscard]] Action declare_version(CLI::App& app, Context& context);

}  // namespace ampscope::cli
