// Which file a training process writes.
#pragma once

#include <string>

#include "probe/record/options.h"

namespace ampscope::record {

/// Expands %p (pid), %r (rank, 0 outside a distributed run) and %h (host name).
[[nodiscard]] std::string expand_placeholders(const std::string& pattern, std::int64_t rank);

/// "run.ampscope" + "rank1" → "run.rank1.ampscope"; a name without an extension gets the word at its end.
[[nodiscard]] std::string with_word(const std::string& path, const std::string& word);

/// The name for this process when no other process of the run has taken it: rank 0 and single processes write the
/// name as asked for, rank k a name of its own.
[[nodiscard]] std::string preferred_path(const Options& options);

/// The name to fall back on when the preferred one was taken by another process of the same run: with the pid.
[[nodiscard]] std::string fallback_path(const Options& options);

}  // namespace ampscope::record
