// What events say of autograd.
#pragma once

#include <algorithm>

#include "trace/model.h"

namespace ampscope::trace {

/// Whether autograd follows what a call took or made: it depends on weights.
[[nodiscard]] inline bool depends_on_weights(const NonfiniteEvent& event) {
  const auto followed = [](const WitnessTensor& tensor) { return tensor.type.requires_grad; };
  return std::any_of(event.inputs.begin(), event.inputs.end(), followed) ||
         std::any_of(event.outputs.begin(), event.outputs.end(), followed);
}

}  // namespace ampscope::trace
