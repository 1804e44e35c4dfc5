// Reports that fill every part of the page, made by hand so that what the page must show is known.
#pragma once

#include "analyzers/core/report.h"

namespace ampscope::viewer_tests {

/// 412 healthy steps of a small transformer in fp16: two skips by design, all tables filled.
[[nodiscard]] analyzers::Report healthy();
/// Gradients clipped while scaled, the schedule advanced on skips, and a note.
[[nodiscard]] analyzers::Report clipped();
/// A matmul overflows; the chain to the loss, the collapse of the scale folded under it.
[[nodiscard]] analyzers::Report overflow();
/// Gradients too small for the loss scale in use; a larger one is recommended.
[[nodiscard]] analyzers::Report underflow();
/// bf16 without a scaler, with rules not evaluated and a compiled region.
[[nodiscard]] analyzers::Report bf16();
/// `parameters` parameters over 60 windows each and `ops` ops.
[[nodiscard]] analyzers::Report huge(int parameters, int ops);
/// Every name tries to be markup, code or a control character.
[[nodiscard]] analyzers::Report hostile();
/// No training step was seen.
[[nodiscard]] analyzers::Report empty();

}  // namespace ampscope::viewer_tests
