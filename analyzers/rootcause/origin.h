// Where a non-finite value that did harm was born.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/core/finding.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

struct Origin {
  /// The call that made it; for a value that was non-finite before any operator saw it, the first call that used it.
  const trace::NonfiniteEvent* event = nullptr;
  /// The operator to blame: that of `event`, or one before it whose outputs were not checked.
  const trace::Site* site = nullptr;
  OpKind op = OpKind::other;
  trace::Phase phase = trace::Phase::forward;
  trace::OriginKind kind = trace::OriginKind::unknown;
  /// The only non-finite inputs were infinities that the program put there on purpose (a mask, the start of a maximum);
  /// this call made NaN of them.
  bool from_intended_infinity = false;
  /// Kind `input`: the parameter that was non-finite already; none for data.
  std::int64_t parameter = trace::none;
  /// Backward only: a non-finite result of the forward operator whose derivative this is, where there is one.
  const trace::NonfiniteEvent* forward_event = nullptr;
  /// It multiplies non-finite values by the zeros of a mask, which was meant to remove them all.
  bool masked = false;
  /// Of a masked origin: where the values it was to remove were made.
  const trace::NonfiniteEvent* born_in = nullptr;
  StepOutcome outcome;           ///< of the first step
  StepSpan steps;                ///< steps that it spoiled
  std::int64_t victims = 0;      ///< calls in the first step that only passed it on
  std::vector<ChainLink> chain;  ///< from birth to where a person sees it
};

/// Non-finite elements of all outputs of a call.
struct NonfiniteCounts {
  std::uint64_t nan = 0;
  std::uint64_t positive = 0;
  std::uint64_t negative = 0;
  std::uint64_t elements = 0;
  [[nodiscard]] std::uint64_t infinite() const noexcept { return positive + negative; }
  [[nodiscard]] std::uint64_t total() const noexcept { return nan + infinite(); }
};

[[nodiscard]] NonfiniteCounts output_counts(const trace::NonfiniteEvent& event) noexcept;

/// Whether the call writes its result there and takes nothing from it (`out=`): what it holds is the result.
[[nodiscard]] bool receives_result(const trace::WitnessTensor& input) noexcept;

/// How a call stands to its non-finite result: as recorded, but one whose only non-finite input is the tensor that its
/// result went to has made it.
[[nodiscard]] trace::OriginKind kind_of(const trace::NonfiniteEvent& event) noexcept;

/// Whether every input of the call was looked at and finite.
[[nodiscard]] bool inputs_finite(const trace::NonfiniteEvent& event) noexcept;

/// Largest finite magnitude of the floating inputs that were looked at; empty when none was.
[[nodiscard]] std::optional<double> input_absmax(const trace::NonfiniteEvent& event) noexcept;

/// The dtype the call computed in: as recorded with it, else of its site, else of its output.
[[nodiscard]] trace::DType compute_dtype(const trace::NonfiniteEvent& event, const trace::Site& site) noexcept;

}  // namespace ampscope::analyzers
