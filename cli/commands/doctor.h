#pragma once

#include "cli/app/context.h"

namespace ampscope::cli {

/// `ampscope doctor`
[[nodiscard]] Action declare_doctor(CLI::App& app, Context& context);

}  // namespace ampscope::cli
