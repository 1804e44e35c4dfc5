// Names of series that analysis asks for.
#pragma once

namespace ampscope::trace {

/// The largest finite magnitude that any fp16 result of the backward passes of a step had, divided by the loss scale:
/// it says from which scale on the step would have overflowed. Non-finite in steps where one did. Its object is the
/// scaler, and its windows stay one step long for longer than those of the others.
inline constexpr const char* backward_absmax_series = "backward_absmax";

}  // namespace ampscope::trace
