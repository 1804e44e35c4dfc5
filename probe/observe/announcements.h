// What torch announces to us: its callbacks, registered and turned off.
#pragma once

#include <cstdint>

namespace ampscope::observe {

/// What torch announces to us, on all threads. What it does not announce costs nothing.
enum class Announced : std::uint8_t {
  nothing,
  nodes,   ///< of autograd: asleep, until a program trains
  ranges,  ///< of optimizers and scalers: a step within a budget
  everything,
};
/// Registers the callbacks with torch for all threads present and future, turns them off one by one, or removes them.
/// Torch may be about to call one on another thread; it then does nothing.
void announce(Announced wanted);

}  // namespace ampscope::observe
