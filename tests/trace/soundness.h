// What every analyzer relies on, whatever the file was.
#pragma once

#include <string>

#include "trace/trace.h"

namespace ampscope::trace::test {

/// What of a trace breaks a promise of trace/trace.h; empty when nothing does.
[[nodiscard]] std::string unsound(const Trace& trace);

}  // namespace ampscope::trace::test
