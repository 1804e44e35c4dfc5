// The callbacks that torch calls around every op, autograd node and range.
#pragma once

namespace ampscope::observe {

/// Registers the callbacks with torch, for all threads present and future. Once a process; they stay registered and do
/// nothing while the state is off, because torch may be about to call them on any thread when they would be removed.
void register_callbacks();

/// Whether this build and the running torch agree on the layout of what the callbacks are given; empty when they do,
/// else a sentence. Runs an operator.
const char* self_test();

}  // namespace ampscope::observe
