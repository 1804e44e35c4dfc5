// Casts that the program makes by hand, told from those that autocast makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/core/finding.h"
#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

/// Steps in which a site was called; an operator that ran before the first step counts as step 0.
[[nodiscard]] StepSpan steps_of(const TraceView& view, const trace::Site& site);

/// Whether the program's own line casts a floating tensor here: an outermost cast whose types differ.
[[nodiscard]] bool casts_by_hand(const TraceView& view, const trace::Site& site);
/// … from a wider to a narrower type, or the other way round.
[[nodiscard]] bool narrows_by_hand(const TraceView& view, const trace::Site& site);
[[nodiscard]] bool widens_by_hand(const TraceView& view, const trace::Site& site);
/// The tensor that a cast takes its values from: of copy_ that is the second argument. Null when the cast has none.
[[nodiscard]] const trace::TensorType* cast_source(const trace::Site& site) noexcept;
[[nodiscard]] trace::DType cast_result(const trace::Site& site) noexcept;

/// The outermost operators that use what a site made, also through operators that only move values.
[[nodiscard]] std::vector<const trace::Site*> users_of(const TraceView& view, std::int64_t site);
/// The outermost operator that made a tensor, through operators that only move values; null when none is known.
[[nodiscard]] const trace::Site* maker_of(const TraceView& view, std::int64_t producer);

/// Whether a tensor is a weight: a parameter that is known, or (before its first gradient) a tensor that requires a
/// gradient although what made it does not compute one.
[[nodiscard]] bool is_weight(const TraceView& view, const trace::TensorType& tensor);

/// "fp16 [64, 128]".
[[nodiscard]] std::string tensor_words(const trace::TensorType& tensor);

}  // namespace ampscope::analyzers
