// What an operator does to values, told from its name: what it takes to judge where a non-finite value can come from.
#pragma once

#include <string_view>

namespace ampscope::analyzers {

enum class OpKind : unsigned char {
  matmul,       ///< products with sums over a dimension: matrix products, convolutions, attention, recurrent layers
  reduction,    ///< sums and everything that contains one over its input: mean, norm, variance, cumulative sums
  loss,         ///< losses: reductions over the batch with their own formula
  softmax,      ///< softmax and log_softmax
  normalise,    ///< batch, layer, group and RMS normalisation
  elementwise,  ///< computes each element from elements at the same place
  cast,         ///< changes the dtype (or copies)
  create,       ///< makes a tensor from nothing or from a constant: its infinities are meant, its garbage is nobody's
  move,         ///< views, copies, gathers and joins: values pass unchanged
  random,       ///< draws numbers
  scaler,       ///< the two operators of gradient scaling
  optimizer,    ///< fused optimizer kernels
  other,
};

/// `name` as the dispatcher has it ("aten::addmm_"), with or without namespace and trailing underscore.
[[nodiscard]] OpKind op_kind(std::string_view name) noexcept;

/// "addmm" from "aten::addmm_": without namespace, in-place mark and leading underscores.
[[nodiscard]] std::string_view base_name(std::string_view name) noexcept;

/// Whether the operator puts constants of its own into a tensor (full, fill_, masked_fill, where, empty).
[[nodiscard]] bool writes_constant(std::string_view name) noexcept;

/// A norm, by whatever name: what gradients are measured with before they are clipped.
[[nodiscard]] bool is_norm(std::string_view name) noexcept;

/// Whether a node of the backward pass is torch's own ("MulBackward0", "torch::autograd::AccumulateGrad"), by its name;
/// those of a program's autograd.Function have the name of its class.
[[nodiscard]] bool is_torch_node(std::string_view name) noexcept;

}  // namespace ampscope::analyzers
