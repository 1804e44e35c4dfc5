// Reports made by hand that the tests of the reporters share.
#pragma once

#include "analyzers/core/report.h"

namespace ampscope::reporters::testing {

/// The run that presentation.md shows: gradients clipped while scaled, with a note beside it.
[[nodiscard]] analyzers::Report clipped_while_scaled();
/// Nothing wrong; some rules could not be evaluated.
[[nodiscard]] analyzers::Report healthy();
/// An overflow with its chain of seven ops and a folded symptom, on several ranks, killed by a signal.
[[nodiscard]] analyzers::Report overflow_with_chain();
/// Eight findings and a note.
[[nodiscard]] analyzers::Report many_findings();
/// No step was seen, the trace is damaged and the recorder gave up.
[[nodiscard]] analyzers::Report nothing_seen();
/// Names made to harm whoever shows them: escape sequences, invalid UTF-8, markup, line breaks, reordering marks; and
/// figures that are not finite.
[[nodiscard]] analyzers::Report hostile();
/// Two scalers.
[[nodiscard]] analyzers::Report two_scalers();

}  // namespace ampscope::reporters::testing
