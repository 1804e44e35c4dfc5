#include "probe/observe/round_trips.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include <c10/core/GradMode.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "probe/observe/nonfinite.h"
#include "probe/observe/protocol_events.h"
#include "probe/observe/tensor_access.h"
#include "probe/observe/thread_state.h"

namespace ampscope::observe {
namespace {

// More tensors than a large model has; beyond it what was noted so far is forgotten.
constexpr std::size_t most_noted = 16'384;
// Fewer values than these may be equal by chance, or all zero.
constexpr std::int64_t fewest_compared = 8;

bool is_wide(trace::DType dtype) noexcept {
  return dtype == trace::DType::float32 || dtype == trace::DType::float64;
}

template <typename Wide, typename Half>
void compare(const void* before, const void* after, std::int64_t count, trace::RoundTrip& trip) noexcept {
  const auto* wide = static_cast<const Wide*>(before);
  const auto* half = static_cast<const Half*>(after);
  for (std::int64_t i = 0; i < count; ++i) {
    const Wide was = wide[i];
    const auto is = static_cast<Wide>(static_cast<float>(half[i]));
    if (was == is || std::isnan(was)) continue;
    ++trip.changed;
    if (std::isfinite(was) && !std::isfinite(is)) ++trip.overflowed;
    if (is == 0) ++trip.vanished;
  }
  trip.compared += count;
}

void compare(const c10::TensorImpl& before, const c10::TensorImpl& after, trace::RoundTrip& trip) noexcept {
  const std::int64_t count = before.numel();
  if (count != after.numel() || !readable(before) || !readable(after) || !before.is_contiguous() ||
      !after.is_contiguous()) {
    return;
  }
  const bool single = dtype_of(before) == trace::DType::float32;
  const bool fp16 = dtype_of(after) == trace::DType::float16;
  const void* const from = address_of(before);
  const void* const to = address_of(after);
  if (single && fp16) compare<float, c10::Half>(from, to, count, trip);
  if (single && !fp16) compare<float, c10::BFloat16>(from, to, count, trip);
  if (!single && fp16) compare<double, c10::Half>(from, to, count, trip);
  if (!single && !fp16) compare<double, c10::BFloat16>(from, to, count, trip);
}

/// A number for the bytes of a tensor; none when they cannot be read, or when so much has been read already that it is
/// enough.
std::optional<std::uint64_t> content_of(RoundTrips& trips, const c10::TensorImpl& half) {
  if (trips.elements_left < half.numel() || half.numel() < fewest_compared || !readable(half) || !half.is_contiguous())
    return std::nullopt;
  trips.elements_left -= half.numel();
  const auto* const bytes = static_cast<const char*>(address_of(half));
  const auto count = static_cast<std::size_t>(half.numel()) * half.itemsize();
  return std::hash<std::string_view>()(std::string_view(bytes, count));
}

/// Whether a tensor is one that lives on from step to step, or is being updated in place.
struct Life {
  bool kept = false;
  bool updated = false;
  std::int64_t parameter = trace::none;
};

Life life_of(Session& session, const ThreadState& thread, const void* address) {
  Life life;
  life.parameter = parameter_at(session, address);
  const ProducerTable::Entry written = session.producers.find(address);
  life.kept = life.parameter >= 0 || written_in_earlier_step(thread, written);
  if (!life.kept && written.known) {
    const SiteState* const writer = site_by_id(session, written.site);
    life.updated = writer && writer->op && writer->op->mutates_first;
  }
  return life;
}

template <typename Map>
void note(Map& noted, const void* address, const RoundTrips::Narrowed& narrowed) {
  if (noted.size() >= most_noted) noted.clear();
  noted.insert_or_assign(address, narrowed);
}

/// The half values at an address, if they are still those that were noted.
const RoundTrips::Narrowed* noted_half(const Session& session, const RoundTrips& trips, const void* address) {
  const auto found = trips.halves.find(address);
  if (found == trips.halves.end()) return nullptr;
  const ProducerTable::Entry written = session.producers.find(address);
  const RoundTrips::Narrowed& half = found->second;
  return written.known && written.clock == half.clock && written.thread == half.thread ? &half : nullptr;
}

void record(Session& session, RoundTrips& trips, trace::RoundTrip trip) {
  if (trips.trips_left <= 0) return;
  --trips.trips_left;
  trip.step = session.step.load(std::memory_order_relaxed);
  session.recorder.define(trip);
}

void went_down(Session& session, const ThreadState& thread, const Frame& frame, const c10::TensorImpl& source,
               const c10::TensorImpl& result) {
  const void* const from = address_of(source);
  const void* const to = address_of(result);
  if (!from || !to || gradient_at(session, from) >= 0) return;
  const Life life = life_of(session, thread, from);
  if (!life.kept && !life.updated) return;
  const ProducerTable::Entry written = session.producers.find(to);
  if (!written.known) return;
  RoundTrips::Narrowed narrowed;
  narrowed.source = from;
  narrowed.clock = written.clock;
  narrowed.thread = written.thread;
  narrowed.trip.down = frame.site->id;
  narrowed.trip.parameter = life.parameter;
  narrowed.trip.elements = source.numel();
  RoundTrips& trips = session.round_trips;
  const std::lock_guard lock(trips.mutex);
  if (trips.elements_left >= narrowed.trip.elements && trips.trips_left > 0) {
    trips.elements_left -= narrowed.trip.elements;
    compare(source, result, narrowed.trip);
  }
  note(trips.halves, to, narrowed);
  if (life.parameter >= 0) {
    if (const auto content = content_of(trips, result)) {
      if (trips.by_content.size() >= most_noted) trips.by_content.clear();
      trips.by_content.insert_or_assign(*content, narrowed);
      trips.sizes.insert(result.numel());
    }
  }
  trips.any_halves.store(true, std::memory_order_relaxed);
}

/// What is noted of a parameter's 16-bit values that stand in other memory now.
const RoundTrips::Narrowed* noted_content(RoundTrips& trips, const c10::TensorImpl& half) {
  if (!trips.sizes.contains(half.numel())) return nullptr;
  const auto content = content_of(trips, half);
  const auto found = content ? trips.by_content.find(*content) : trips.by_content.end();
  return found != trips.by_content.end() ? &found->second : nullptr;
}

void came_up(Session& session, const Frame& frame, const c10::TensorImpl& half, const c10::TensorImpl& tensor) {
  const void* const result = address_of(tensor);
  RoundTrips& trips = session.round_trips;
  const std::lock_guard lock(trips.mutex);
  const RoundTrips::Narrowed* noted = noted_half(session, trips, address_of(half));
  if (!noted) noted = noted_content(trips, half);
  if (!noted) return;
  RoundTrips::Narrowed narrowed = *noted;
  narrowed.trip.up = frame.site->id;
  if (frame.op->mutates_first) {
    // Into other memory it is another model's, a teacher's.
    if (result == narrowed.source) record(session, trips, narrowed.trip);
    return;
  }
  const ProducerTable::Entry written = session.producers.find(result);
  if (!written.known) return;
  narrowed.clock = written.clock;
  narrowed.thread = written.thread;
  narrowed.memory = tensor.unsafe_storage().getWeakStorageImpl();
  note(trips.returned, result, narrowed);
  trips.any_returned.store(true, std::memory_order_relaxed);
}

/// Takes what was cast back to a new tensor out of the table, if that tensor still holds it.
bool take_returned(const Session& session, RoundTrips& trips, const void* address, RoundTrips::Narrowed& taken) {
  const auto found = trips.returned.find(address);
  if (found == trips.returned.end()) return false;
  taken = found->second;
  trips.returned.erase(found);
  if (trips.returned.empty()) trips.any_returned.store(false, std::memory_order_relaxed);
  if (!taken.memory || taken.memory->expired()) return false;
  const ProducerTable::Entry written = session.producers.find(address);
  return written.known && written.clock == taken.clock && written.thread == taken.thread;
}

/// fp32 values that went down and up before are copied to where they came from.
void copied_back(Session& session, const Frame& frame, const void* source, const void* target) {
  RoundTrips& trips = session.round_trips;
  const std::lock_guard lock(trips.mutex);
  const auto found = trips.returned.find(source);
  if (found == trips.returned.end() || found->second.source != target) return;
  RoundTrips::Narrowed narrowed;
  if (!take_returned(session, trips, source, narrowed)) return;
  narrowed.trip.up = frame.site->id;
  record(session, trips, narrowed.trip);
}

/// The same half values in another place (clone, cpu).
void moved(Session& session, const void* from, const void* to) {
  RoundTrips& trips = session.round_trips;
  const std::lock_guard lock(trips.mutex);
  const RoundTrips::Narrowed* const noted = noted_half(session, trips, from);
  const ProducerTable::Entry written = session.producers.find(to);
  if (!noted || !written.known) return;
  RoundTrips::Narrowed narrowed = *noted;
  narrowed.clock = written.clock;
  narrowed.thread = written.thread;
  note(trips.halves, to, narrowed);
}

}  // namespace

void cast_ended(Session& session, const ThreadState& thread, const Frame& frame, c10::ArrayRef<c10::IValue> outputs) {
  if (frame.phase == trace::Phase::backward || frame.recompute || outputs.empty()) return;
  const std::size_t index = frame.op->mutates_first ? 1 : 0;
  const at::Tensor* const output = tensor_of(outputs[0]);
  if (index >= frame.input_count || !output) return;
  const auto source = frame.inputs[index].tensor.lock();
  if (!source) return;
  const c10::TensorImpl& result = *output->unsafeGetTensorImpl();
  const trace::DType before = dtype_of(*source);
  const trace::DType after = dtype_of(result);
  const void* const from = address_of(*source);
  const void* const to = address_of(result);
  if (!from || !to || (from == to && !frame.op->mutates_first)) return;
  const bool halves = session.round_trips.any_halves.load(std::memory_order_relaxed);
  if (is_wide(before) && trace::is_half(after)) {
    went_down(session, thread, frame, *source, result);
  } else if (halves && trace::is_half(before) && is_wide(after)) {
    came_up(session, frame, *source, result);
  } else if (halves && trace::is_half(before) && before == after) {
    moved(session, from, to);
  } else if (is_wide(before) && is_wide(after) && frame.op->mutates_first &&
             session.round_trips.any_returned.load(std::memory_order_relaxed)) {
    copied_back(session, frame, from, to);
  }
}

void kept_values_written(Session& session, const ThreadState& thread, const Frame& frame, const c10::IValue& target) {
  RoundTrips& trips = session.round_trips;
  const bool by_optimizer = frame.phase == trace::Phase::optimizer;
  const auto visit = [&](const at::Tensor& tensor) {
    const void* const address = address_of(*tensor.unsafeGetTensorImpl());
    const std::lock_guard lock(trips.mutex);
    const auto found = trips.returned.find(address);
    if (found == trips.returned.end()) return;
    // What is cast back and changed in one step is a temporary, data perhaps, and nobody's state.
    const bool kept = by_optimizer || written_in_earlier_step(thread, session.producers.find(address));
    RoundTrips::Narrowed narrowed;
    if (take_returned(session, trips, address, narrowed) && kept) record(session, trips, narrowed.trip);
  };
  if (const at::Tensor* tensor = tensor_of(target)) {
    visit(*tensor);
  } else if (target.isTensorList()) {
    for (const c10::IValue& entry : target.toListRef()) {
      if (const at::Tensor* listed = tensor_of(entry)) visit(*listed);
    }
  }
}

void parameter_replaced(Session& session, const void* address, std::int64_t parameter) {
  RoundTrips& trips = session.round_trips;
  if (!trips.any_returned.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(trips.mutex);
  RoundTrips::Narrowed narrowed;
  if (!take_returned(session, trips, address, narrowed)) return;
  narrowed.trip.parameter = parameter;
  record(session, trips, narrowed.trip);
}

}  // namespace ampscope::observe
