// Merging what several calls of a site in one step say of their writes.
#pragma once

#include <algorithm>
#include <type_traits>

#include "trace/model.h"

namespace ampscope::record {

static_assert(std::is_trivially_copyable_v<trace::WriteSample>, "it travels as bytes");

/// `more` came after `into`.
inline void merge(trace::WriteSample& into, const trace::WriteSample& more) {
  into.idle_calls = more.idle_calls + (more.idle_calls == more.calls ? into.idle_calls : 0);
  into.calls += more.calls;
  into.elements += more.elements;
  into.concerned += more.concerned;
  into.changed += more.changed;
  into.moved += more.moved;
  into.value_sum += more.value_sum;
  into.contribution_sum += more.contribution_sum;
  into.outward_sum += more.outward_sum;
  into.distance_sum += more.distance_sum;
  into.latest_value = more.latest_value;
  into.latest_contribution = more.latest_contribution;
  into.writer = more.writer;
  into.gradient = into.gradient || more.gradient;
  into.copied = into.copied || more.copied;
  into.whole = into.whole || more.whole;
  into.smallest = std::min(into.smallest, more.smallest);
  into.largest = std::max(into.largest, more.largest);
  if (more.distinct > into.distinct) {
    into.distinct = more.distinct;
    into.distinct_kept = more.distinct_kept;
    into.evenly_spaced = more.evenly_spaced;
  }
}

}  // namespace ampscope::record
