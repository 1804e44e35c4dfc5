// What rules about origins share: judging whether a narrow type overflowed, and saying what stood at the scene.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzers/core/rule.h"
#include "analyzers/rootcause/origin.h"

namespace ampscope::analyzers {

/// Whether the call overflowed its type although wider arithmetic would not have.
///
/// `bound` is a limit that the exact result cannot pass, from the sizes of the inputs: a result that cannot reach the
/// type's largest value did not overflow it. A replay in higher precision, where there is one, decides alone. `dtype`
/// is the type that the result had to fit.
[[nodiscard]] Claim judge_overflow(const trace::NonfiniteEvent& event, trace::DType dtype, std::optional<double> bound);

/// Number of products that one element of a matrix product or convolution sums; empty when it cannot be told.
[[nodiscard]] std::optional<std::int64_t> inner_dimension(const trace::Site& site, const trace::NonfiniteEvent& event);

/// A limit that no element of a matrix product can pass: number of terms times the largest factors, plus what is added.
/// Empty when the sizes of the inputs are not known, and for three matrices: one may be added, not multiplied.
[[nodiscard]] std::optional<double> largest_product(const Origin& origin);

/// Number of elements that one element of a reduction's result is made of; empty when it cannot be told.
[[nodiscard]] std::optional<std::int64_t> reduction_terms(const trace::Site& site, const trace::NonfiniteEvent& event);

/// The smallest of the types of the floating results.
[[nodiscard]] trace::DType output_dtype(const trace::NonfiniteEvent& event) noexcept;

/// "fp16 [64, 1024], largest 312", "fp32 [128], 3 NaN of 128, largest 1.2".
[[nodiscard]] std::string describe_tensor(const trace::WitnessTensor& tensor);

/// The inputs (or outputs) in words, separated by "; ".
[[nodiscard]] std::string describe_tensors(const std::vector<trace::WitnessTensor>& tensors);

/// "7 infinite", "3 NaN and 12 infinite", "all 64 NaN" of the outputs.
[[nodiscard]] std::string describe_bad(const NonfiniteCounts& counts);

/// Puts what is known of the call into the evidence: dtype, sizes of inputs, counts, the replay.
void add_scene(const Origin& origin, Finding& finding);

/// " It reached the loss in step 7, which was skipped." — what came of it, from the outcome and the number of steps.
[[nodiscard]] std::string describe_outcome(const Origin& origin);

}  // namespace ampscope::analyzers
