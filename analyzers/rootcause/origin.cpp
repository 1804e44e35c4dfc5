#include "analyzers/rootcause/origin.h"

#include <algorithm>

namespace ampscope::analyzers {

NonfiniteCounts output_counts(const trace::NonfiniteEvent& event) noexcept {
  NonfiniteCounts counts;
  for (const trace::WitnessTensor& output : event.outputs) {
    counts.nan += output.stats.nan;
    counts.positive += output.stats.positive_infinity;
    counts.negative += output.stats.negative_infinity;
    counts.elements += output.stats.count;
  }
  return counts;
}

bool receives_result(const trace::WitnessTensor& input) noexcept {
  return input.argument == "out";
}

trace::OriginKind kind_of(const trace::NonfiniteEvent& event) noexcept {
  if (event.kind != trace::OriginKind::propagator && event.kind != trace::OriginKind::input) return event.kind;
  bool received = false;
  for (const trace::WitnessTensor& input : event.inputs) {
    // One that was not looked at may have brought it.
    if (!receives_result(input) && trace::is_floating(input.type.dtype) && !input.looked_at) return event.kind;
    if (input.stats.nonfinite() == 0) continue;
    if (!receives_result(input)) return event.kind;
    received = true;
  }
  return received ? trace::OriginKind::producer : event.kind;
}

bool inputs_finite(const trace::NonfiniteEvent& event) noexcept {
  return std::all_of(event.inputs.begin(), event.inputs.end(), [](const trace::WitnessTensor& input) {
    return !trace::is_floating(input.type.dtype) || receives_result(input) ||
           (input.looked_at ? input.stats.nonfinite() == 0 : input.finite_before);
  });
}

std::optional<double> input_absmax(const trace::NonfiniteEvent& event) noexcept {
  std::optional<double> largest;
  for (const trace::WitnessTensor& input : event.inputs) {
    if (!input.looked_at || !trace::is_floating(input.type.dtype) || receives_result(input)) continue;
    largest = std::max(largest.value_or(0), input.stats.absmax);
  }
  return largest;
}

trace::DType compute_dtype(const trace::NonfiniteEvent& event, const trace::Site& site) noexcept {
  if (event.compute_dtype != trace::DType::unknown) return event.compute_dtype;
  if (site.compute_dtype != trace::DType::unknown) return site.compute_dtype;
  return event.outputs.empty() ? trace::DType::unknown : event.outputs.front().type.dtype;
}

}  // namespace ampscope::analyzers
