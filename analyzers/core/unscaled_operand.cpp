#include "analyzers/core/unscaled_operand.h"

#include <algorithm>

#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"

namespace ampscope::analyzers {

UnscaledOperands::UnscaledOperands(const TraceView& view) : view_(view) {
  for (const trace::Site& site : view.trace().sites) {
    for (const trace::TensorType& input : site.inputs) {
      if (input.parameter != trace::none && input.producer != trace::none)
        parameters_.emplace(input.producer, input.shape);
    }
  }
}

bool UnscaledOperands::is_parameter(const trace::TensorType& tensor) const {
  return tensor.parameter != trace::none || parameters_.contains({tensor.producer, tensor.shape});
}

UnscaledOperands::Carries UnscaledOperands::what(const trace::TensorType& tensor) {
  if (is_parameter(tensor)) return Carries::no_scale;
  const trace::Site* const made = view_.site(tensor.producer);
  if (made == nullptr) return Carries::unknown;
  // What leads back to itself (an average that is kept) is not told.
  const auto [known, is_new] = known_.emplace(made->id, Carries::unknown);
  return is_new ? known_[made->id] = made_by(*made) : known->second;
}

UnscaledOperands::Carries UnscaledOperands::made_by(const trace::Site& site) {
  if (site.phase == trace::Phase::backward && !runs_in_hook(view_, site)) return Carries::unknown;
  const OpKind kind = op_kind(site.name);
  if (kind == OpKind::random) return Carries::no_scale;
  if (kind == OpKind::create) return Carries::constant;
  if (kind != OpKind::elementwise && kind != OpKind::cast && kind != OpKind::move && kind != OpKind::reduction)
    return Carries::unknown;
  Carries all = Carries::constant;
  for (const trace::TensorType& input : site.inputs) {
    const Carries one = what(input);
    if (one == Carries::unknown) return one;
    if (one == Carries::no_scale) all = one;
  }
  return all;
}

bool UnscaledOperands::added_by(const trace::Site& site) {
  const std::string_view base = base_name(site.name);
  const auto& inputs = site.inputs;
  // Of lists, one after the other, only some tensors are recorded.
  if (base == "foreach_add" || base == "foreach_sub") {
    return std::any_of(inputs.begin(), inputs.end(),
                       [](const trace::TensorType& input) { return input.parameter != trace::none; });
  }
  if ((base != "add" && base != "sub") || inputs.size() < 2) return false;
  return (what(inputs[0]) == Carries::no_scale) != (what(inputs[1]) == Carries::no_scale);
}

}  // namespace ampscope::analyzers
