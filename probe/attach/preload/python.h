// Python programs that ignore PYTHONPATH, the usual way in.
#pragma once

namespace ampscope::attach {

/// Where this process is a Python that will not look at PYTHONPATH (-I, -E, -S, embedded, or started with an
/// environment that lost it): makes it import ampscope just before it imports torch. Call before the program's main.
void attach_to_isolated_python(int argument_count, char** arguments, const char* library_folder);

}  // namespace ampscope::attach
