// Telling that observing is off, without a C++ run-time library.
#pragma once

namespace ampscope::attach {

/// One line on stderr and one JSON object in AMPSCOPE_STATUS_FILE. Also takes AMPSCOPE_OUTPUT out of the environment,
/// so that processes started from here do not fail in the same way again.
void report_failure(const char* sentence);

}  // namespace ampscope::attach
