// What rules about writes that are too small share: sums over what was seen of one place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "analyzers/core/trace_view.h"

namespace ampscope::analyzers {

/// Writes of one place in one sampled step, or in several.
struct StepWrites {
  std::int64_t step = 0;
  std::int64_t calls = 0;
  std::int64_t idle_calls = 0;
  std::int64_t writer = trace::none;
  bool copied = false;
  double concerned = 0;
  double changed = 0;
  double moved = 0;
  double value_sum = 0;
  double contribution_sum = 0;
  double outward_sum = 0;
  double distance_sum = 0;
  double latest_value = 0;
  double latest_contribution = 0;
  [[nodiscard]] double unchanged() const noexcept { return concerned > 0 ? 1 - changed / concerned : 0; }
  /// `weight`: elements that each one that was looked at stands for.
  void add(const trace::WriteSample& write, double weight = 1) noexcept {
    step = write.step;
    calls += write.calls;
    idle_calls = write.idle_calls;
    writer = write.writer;
    copied = copied || write.copied;
    concerned += static_cast<double>(write.concerned) * weight;
    changed += static_cast<double>(write.changed) * weight;
    moved += static_cast<double>(write.moved) * weight;
    value_sum += write.value_sum * weight;
    contribution_sum += write.contribution_sum * weight;
    outward_sum += write.outward_sum * weight;
    distance_sum += write.distance_sum * weight;
    latest_value = write.latest_value;
    latest_contribution = write.latest_contribution;
  }
};

/// By site, the writes of a kind step by step.
template <typename Wanted>
std::map<std::int64_t, std::map<std::int64_t, StepWrites>> writes_by_site(const TraceView& view, Wanted wanted) {
  std::map<std::int64_t, std::map<std::int64_t, StepWrites>> result;
  for (const trace::WriteSample& write : view.trace().writes) {
    if (wanted(write)) result[write.site][write.step].add(write);
  }
  return result;
}

[[nodiscard]] inline StepWrites sum_of(const std::map<std::int64_t, StepWrites>& steps) {
  StepWrites all;
  for (const auto& [step, writes] : steps) {
    all.calls += writes.calls;
    all.writer = writes.writer;
    all.concerned += writes.concerned;
    all.changed += writes.changed;
    all.value_sum += writes.value_sum;
    all.contribution_sum += writes.contribution_sum;
    all.outward_sum += writes.outward_sum;
    all.distance_sum += writes.distance_sum;
  }
  return all;
}

/// Whether what a place writes is what it finds there the next time: the tensor that it changes is kept.
[[nodiscard]] inline bool comes_round(const TraceView& view, std::int64_t site, std::int64_t writer) {
  if (writer == site) return true;
  if (writer == trace::none) return false;
  const std::vector<bool> before = view.ancestors(writer);
  return static_cast<std::size_t>(site) < before.size() && before[static_cast<std::size_t>(site)];
}

/// Smallest relative change that a type shows everywhere: half a step of the numbers just above a power of two.
[[nodiscard]] inline double smallest_change(trace::DType dtype) noexcept {
  return std::ldexp(1.0, -trace::float_limits(dtype).significand_bits);
}

}  // namespace ampscope::analyzers
