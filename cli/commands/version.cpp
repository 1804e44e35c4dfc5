#include "cli/commands/version.h"

#include <fmt/format.h>

#include "cli/output/terminal.h"
#include "trace/model.h"

namespace ampscope::cli {

Action declare_version(CLI::App& /*app*/, Context& /*context*/) {
  return [] {
    print(Stream::out, fmt::format("ampscope {}\ntrace format {}.{}, report ampscope.report/1, torch 2.11 to 2.15\n",
                                   AMPSCOPE_VERSION, trace::format_major, trace::format_minor));
    return 0;
  };
}

}  // namespace ampscope::cli
