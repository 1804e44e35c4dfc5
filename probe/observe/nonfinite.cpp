#include "probe/observe/nonfinite.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/observe/protocol_events.h"
#include "probe/observe/replay.h"
#include "probe/observe/tensor_access.h"
#include "probe/stats/kernels.h"

namespace ampscope::observe {
namespace {

// All events of a harmed step up to this many, then none: the first ones tell the story.
constexpr std::size_t max_events_a_step = 192;
constexpr std::int64_t max_events_a_run = 20'000;
// A run that stays bad says the same in every step.
constexpr std::int64_t fully_recorded_bad_steps = 24;
constexpr std::size_t events_a_later_bad_step = 8;
// A site whose non-finite output has done no harm this often (a mask of -inf) is looked at no closer.
constexpr std::int64_t harmless_enough = 3;

trace::WitnessTensor witness(ThreadState& thread, const at::Tensor& tensor, std::int64_t producer,
                             std::int64_t parameter) {
  trace::WitnessTensor seen;
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  seen.type = type_of(impl);
  seen.type.producer = producer;
  seen.type.parameter = parameter;
  stats::TensorView view;
  if (readable(impl) && view_of(impl, view)) {
    seen.looked_at = true;
    thread.scratch.reset();
    stats::accumulate(view, thread.scratch);
    seen.stats = stats::to_tensor_stats(thread.scratch);
  }
  return seen;
}

void write(Session& session, trace::NonfiniteEvent&& event) {
  if (session.nonfinite_events.fetch_add(1, std::memory_order_relaxed) < max_events_a_run) {
    session.recorder.define(std::move(event));
  }
}

/// Whether a number among the arguments is non-finite itself.
bool constant_is_nonfinite(const Frame& frame) {
  for (const c10::IValue& value : frame.arguments) {
    if (value.isDouble() && !std::isfinite(value.toDouble())) return true;
  }
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    const auto strong = frame.inputs[i].tensor.lock();
    if (strong && strong->is_wrapped_number() && !std::isfinite(scalar_of(*strong))) return true;
  }
  return false;
}

bool step_is_known_bad(const Session& session, std::int64_t step) {
  return session.bad_step.load(std::memory_order_acquire) == step;
}

std::size_t events_allowed(const Session& session) {
  return session.bad_steps.load(std::memory_order_relaxed) <= fully_recorded_bad_steps ? max_events_a_step
                                                                                       : events_a_later_bad_step;
}

}  // namespace

void write_recent_calls(Session& session, ThreadState& thread) {
  if (session.flight_recorded.exchange(true, std::memory_order_relaxed)) return;
  thread.recent.freeze(session.step.load(std::memory_order_relaxed), trace::none);
  session.recorder.define(thread.recent.take());
}

void settle_events(Session& session, ThreadState& thread) {
  if (thread.step_events.empty()) return;
  const std::int64_t step = session.step.load(std::memory_order_relaxed);
  const bool bad = session.bad_step.load(std::memory_order_acquire) >= thread.step_events_step;
  if (!bad && step == thread.step_events_step) return;
  if (bad) {
    write_recent_calls(session, thread);
  } else {
    thread.recent.thaw();
  }
  const std::size_t allowed = events_allowed(session);
  std::size_t written = 0;
  for (trace::NonfiniteEvent& event : thread.step_events) {
    SiteState* site = site_by_id(session, event.site);
    const bool first = site && site->events_written == 0;
    if (site && !bad) ++site->harmless_steps;
    if (!(bad && written < allowed) && !first) continue;
    if (site) ++site->events_written;
    ++written;
    write(session, std::move(event));
  }
  thread.step_events.clear();
  if (bad) session.recorder.urgent();
}

void nonfinite_output(Session& session, ThreadState& thread, const Frame& frame, c10::ArrayRef<c10::IValue> outputs,
                      bool has_nan) {
  if (!frame.site) return;
  SiteState& site = *frame.site;
  const std::int64_t step = session.step.load(std::memory_order_relaxed);
  site.counters->count_nonfinite(step);
  if (thread.step_events_step != step) {
    settle_events(session, thread);
    thread.step_events_step = step;
  }
  if (site.harmless_steps >= harmless_enough && !has_nan) return;
  if (site.last_event_step == step && site.events_written > 0) return;  // Once a site and step.
  if (thread.step_events.size() >= events_allowed(session)) return;
  site.last_event_step = step;

  if (constant_is_nonfinite(frame)) return;  // The program asked for it: a mask, the start of a running maximum.

  trace::NonfiniteEvent event;
  event.order = session.anomaly_order.fetch_add(1, std::memory_order_relaxed);
  event.step = step;
  event.micro_batch = current_micro_batch(session);
  event.site = site.id;
  event.compute_dtype = site.compute_dtype;
  bool any_input = false;
  bool bad_input = frame.input_was_nonfinite;
  bool bad_external = false;
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    auto strong = frame.inputs[i].tensor.lock();
    if (!strong) continue;
    const at::Tensor tensor(std::move(strong));
    const ProducerTable::Entry producer = session.producers.find(frame.inputs[i].address);
    const std::int64_t parameter = parameter_at(session, frame.inputs[i].address);
    // An in-place op has overwritten its target; what it held before is known from its producer only.
    const bool overwritten = frame.op->mutates_first && frame.inputs[i].argument == 0;
    trace::WitnessTensor seen;
    if (overwritten) {
      seen.type = type_of(*tensor.unsafeGetTensorImpl());
      seen.type.parameter = parameter;
    } else {
      seen = witness(thread, tensor, producer.known ? producer.site : trace::none, parameter);
    }
    any_input |= seen.looked_at;
    if (seen.looked_at && seen.stats.nonfinite() > 0) {
      bad_input = true;
      // Finite when it was last written by an op we saw, non-finite now: something unseen wrote it.
      const bool contradicts = producer.known && producer.checked && !producer.nonfinite;
      bad_external |= !producer.known || producer.external || contradicts;
    }
    event.inputs.push_back(std::move(seen));
  }
  event.kind = bad_external            ? trace::OriginKind::input
               : bad_input             ? trace::OriginKind::propagator
               : any_input             ? trace::OriginKind::producer
               : frame.input_count > 0 ? trace::OriginKind::unknown
                                       : trace::OriginKind::producer;
  for (const c10::IValue& value : outputs) {
    if (value.isTensor() && value.toTensor().defined() && event.outputs.size() < 4) {
      event.outputs.push_back(witness(thread, value.toTensor(), site.id, trace::none));
    }
  }
  if (event.kind == trace::OriginKind::producer) event.replay = replay(frame);
  for (const c10::IValue& value : frame.arguments) {
    if (value.isDouble()) event.scalars.push_back(value.toDouble());
    if (value.isInt()) event.scalars.push_back(static_cast<double>(value.toInt()));
  }
  if (!session.flight_recorded.load(std::memory_order_relaxed)) thread.recent.freeze(step, event.order);
  if (step_is_known_bad(session, step)) {
    write_recent_calls(session, thread);
    ++site.events_written;
    write(session, std::move(event));
    session.recorder.urgent();
  } else {
    thread.step_events.push_back(std::move(event));
  }
}

void nonfinite_gradient(Session& session, ThreadState& thread, std::int64_t parameter, const at::Tensor& gradient) {
  stats::TensorView view;
  const c10::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
  if (!readable(impl) || !view_of(impl, view)) return;
  const stats::NonfiniteCount count = stats::count_nonfinite(view);
  trace::NonfiniteGradient row;
  row.step = session.step.load(std::memory_order_relaxed);
  row.parameter = parameter;
  row.count = gradient.numel();
  row.nan = static_cast<std::int64_t>(count.nan);
  row.infinite = static_cast<std::int64_t>(count.positive_infinity + count.negative_infinity);
  session.recorder.nonfinite_gradient(*thread.lane, row);
  step_is_bad(session);
  settle_events(session, thread);
  write_recent_calls(session, thread);
}

}  // namespace ampscope::observe
