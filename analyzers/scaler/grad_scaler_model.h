// What torch.amp.GradScaler.update does to the loss scale, bit for bit.
//
// The operator behind it, aten::_amp_update_scale_ (ATen/native/cpu/AmpGradScalerKernels.cpp and cuda/AmpKernels.cu),
// keeps the scale as a float and takes both factors as double: the product is computed in double and rounded to float
// once. Growth that would not be finite is left out, but the tracker still starts anew. Backoff has no lower limit:
// from 2^16, 165 skips in a row end at exactly 0.
#pragma once

#include <cstdint>

#include "trace/model.h"

namespace ampscope::analyzers {

struct ScalerState {
  float scale = 65536.0F;
  std::int32_t tracker = 0;  ///< updates without a skip since the scale last changed
  friend bool operator==(const ScalerState&, const ScalerState&) = default;
};

struct ScalerFactors {
  double growth = 2.0;
  double backoff = 0.5;
  std::int32_t interval = 2000;
  friend bool operator==(const ScalerFactors&, const ScalerFactors&) = default;
};

/// The state after one update; `found_inf` is what the check of the gradients found (any value but 0 means non-finite).
[[nodiscard]] ScalerState updated(ScalerState state, float found_inf, const ScalerFactors& factors) noexcept;

[[nodiscard]] ScalerFactors factors_of(const trace::ScalerUpdate& update) noexcept;

}  // namespace ampscope::analyzers
