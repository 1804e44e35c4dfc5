// Whether this torch announces its operators the way this build expects.
#pragma once

namespace ampscope::observe {

/// Whether this build and the running torch agree on the layout of what the callbacks are given; empty when they do,
/// else a sentence. Runs an operator.
const char* self_test();

}  // namespace ampscope::observe
