// What a program adds to its gradients: whether it carries the loss scale as they do.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

class UnscaledOperands {
 public:
  /// Of a view that outlives it.
  explicit UnscaledOperands(const TraceView& view);

  /// Whether a call of the kind of add puts together gradients and something that no loss scale has multiplied: a
  /// parameter, random numbers, or what elementwise operators and reductions make of these alone. False where it
  /// cannot be told, and for calls of other kinds.
  [[nodiscard]] bool added_by(const trace::Site& site);

 private:
  enum class Carries : unsigned char { unknown, constant, no_scale };

  [[nodiscard]] bool is_parameter(const trace::TensorType& tensor) const;
  [[nodiscard]] Carries what(const trace::TensorType& tensor);
  [[nodiscard]] Carries made_by(const trace::Site& site);

  const TraceView& view_;
  // A view without gradient (p.detach(), p.data) shares the memory of a parameter: who wrote it, and its shape.
  std::set<std::pair<std::int64_t, std::vector<std::int64_t>>> parameters_;
  std::map<std::int64_t, Carries> known_;  ///< by site
};

}  // namespace ampscope::analyzers
