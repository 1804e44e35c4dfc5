// What a trace file is and holds, in words, for `ampscope info`.
#pragma once

#include <string>
#include <vector>

#include "trace/trace.h"

namespace ampscope::trace {

struct Fact {
  std::string label;  ///< "format", "command", …; a few words without a colon
  std::string value;
};

struct Description {
  std::vector<Fact> file;         ///< path, format, sizes
  std::vector<Fact> run;          ///< who was observed, and how it ended; facts that are not known are left out
  std::vector<Fact> contents;     ///< steps, sites, parameters, …
  std::vector<Fact> recorder;     ///< level, cost, dropped events
  std::vector<KindSize> sizes;    ///< by record kind, the largest first
  std::vector<std::string> lost;  ///< one sentence for each thing that is missing; empty for a whole trace
};

[[nodiscard]] Description describe(const Trace& trace);

/// "0 B", "512 B", "1.5 KiB", "20 MiB".
[[nodiscard]] std::string byte_text(std::uint64_t bytes);

[[nodiscard]] const char* level_name(Level level) noexcept;

}  // namespace ampscope::trace
