// Traces from disk, with what is to be said about them.
#pragma once

#include <string>
#include <vector>

#include "trace/trace.h"

namespace ampscope::cli {

struct LoadedTraces {
  std::vector<trace::Trace> traces;
  std::vector<std::string> warnings;  ///< what of them could not be read, one sentence each
};

/// Reads `paths`, showing progress on stderr. Throws UserError when one is no trace, too new or of another run than the
/// first: a report is about one run.
[[nodiscard]] LoadedTraces load_traces(const std::vector<std::string>& paths);

/// Those of `candidates` that are traces with this run id, in order.
[[nodiscard]] std::vector<std::string> traces_of_run(std::vector<std::string> candidates, const std::string& run_id);

/// `paths` and the traces beside each of them that belong to the same run. Throws UserError when one cannot be opened.
[[nodiscard]] std::vector<std::string> with_siblings(const std::vector<std::string>& paths);

}  // namespace ampscope::cli
