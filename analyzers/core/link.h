// One verdict per cause: puts findings that another one explains under it.
#pragma once

#include <vector>

#include "analyzers/core/finding.h"

namespace ampscope::analyzers {

/// A finding on its way into the report.
struct Draft {
  Finding finding;
  std::vector<std::size_t> processes;  ///< that have it, ascending
};

/// Merges findings of one rule that blame the same place, from several processes or several origins.
void merge_equal(std::vector<Draft>& drafts);

/// Moves every finding that another one explains (Rule::symptom_of, same process, overlapping steps) into that one's
/// `explained`, however long the way to the first cause is. A cause is at least as severe as what it explains.
void link_symptoms(std::vector<Draft>& drafts);

}  // namespace ampscope::analyzers
