// Questions about the call in which a non-finite value was born that several rules ask: what it divided by, whether it
// left a function's domain, who throws its result away, whether rounding can have made a zero.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/evidence.h"

namespace ampscope::analyzers {

/// Whether the operator to blame is the one whose inputs were looked at, and made the value from finite inputs.
[[nodiscard]] bool made_here(const Origin& origin) noexcept;

/// Whether computing it again in higher precision gave non-finite values too.
[[nodiscard]] bool nonfinite_when_wider(const trace::NonfiniteEvent& event) noexcept;
/// Whether computing it again in higher precision gave finite values.
[[nodiscard]] bool finite_when_wider(const trace::NonfiniteEvent& event) noexcept;

/// A number among the arguments: of this call, or of the first call of the site. `position` counts from 0.
[[nodiscard]] std::span<const double> scalars_of(const Origin& origin) noexcept;

/// What a call divides by, or takes a negative power of.
struct Divisor {
  const trace::WitnessTensor* tensor = nullptr;  ///< null: a number of the program
  bool known = false;
  bool is_number = false;
  double number = 0;
  std::uint64_t zeros = 0;  ///< exact zeros in it
  std::uint64_t count = 0;
};
/// Divisor of div, reciprocal, rsqrt, addcdiv and negative powers; `known` is false for other operators.
[[nodiscard]] Divisor divisor_of(const Origin& origin) noexcept;

/// Whether `origin` divides by exact zeros, and their number explains the non-finite results.
[[nodiscard]] bool divides_by_zero(const Origin& origin) noexcept;

/// The operator that copies a sum of its own, kept in fp32 while it adds up, to a half-precision result (index_add);
/// null where `origin` is no such copy.
[[nodiscard]] const trace::Site* accumulates_wider(const TraceView& view, const Origin& origin);

/// Whether it is a line of a hook that runs in the backward pass: the derivative of an operator has no line, and the
/// backward of the program's own autograd.Function is a derivative as well.
[[nodiscard]] bool is_hook_code(const TraceView& view, const Origin& origin);

/// The constant of a mask (-1e9, the lowest fp32) that the call turned into infinity because its result's type ends
/// before it; empty when that is not what happened.
[[nodiscard]] std::optional<double> mask_constant(const Origin& origin) noexcept;

/// The first operator that takes the tensor of one fp16 value, made of a number of the program, from which all the
/// infinities come that `origin` met; null where they come from something else.
[[nodiscard]] const trace::Site* infinite_constant(const TraceView& view, const Origin& origin);

/// The mask at the low end of the type whose sum with finite scores was -inf; null when that is not what happened.
[[nodiscard]] const trace::WitnessTensor* saturating_mask(const Origin& origin) noexcept;

/// Whether a zero of this tensor can be a value that low precision rounded away: it was computed in fp16 or bf16.
[[nodiscard]] bool may_be_rounded(const TraceView& view, const trace::WitnessTensor& tensor);

/// An operator that selects among values or limits them (where, masked_fill, nan_to_num, clamp) and that takes the
/// result of `site`, directly or over a few elementwise operators; null when there is none.
[[nodiscard]] const trace::Site* discarded_by(const TraceView& view, const trace::Site& site);

/// Name of the autograd node that the origin lies in, "" outside backward.
[[nodiscard]] std::string_view node_of(const TraceView& view, const Origin& origin);

/// The range of a tensor in words: "-3 to 1.5".
[[nodiscard]] std::string describe_range(const trace::TensorStats& stats);

}  // namespace ampscope::analyzers
