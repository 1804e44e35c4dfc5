#include "analyzers/scaler/grad_scaler_model.h"

#include <cmath>

namespace ampscope::analyzers {

ScalerState updated(ScalerState state, float found_inf, const ScalerFactors& factors) noexcept {
  if (found_inf != 0.0F) {
    return {static_cast<float>(static_cast<double>(state.scale) * factors.backoff), 0};
  }
  const std::int32_t successful = state.tracker + 1;
  if (successful != factors.interval) return {state.scale, successful};
  const auto grown = static_cast<float>(static_cast<double>(state.scale) * factors.growth);
  return {std::isfinite(grown) ? grown : state.scale, 0};
}

ScalerFactors factors_of(const trace::ScalerUpdate& update) noexcept {
  return {update.growth_factor, update.backoff_factor, update.growth_interval};
}

}  // namespace ampscope::analyzers
