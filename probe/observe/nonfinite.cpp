#include "probe/observe/nonfinite.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/observe/kept_calls.h"
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

// Counts of a mask or of labels matter; those of a table of indices do not.
constexpr std::int64_t max_counted_integers = std::int64_t{1} << 20;

template <typename Integer>
void count_integers(const stats::TensorView& view, trace::TensorStats& stats) {
  const auto* const values = static_cast<const Integer*>(view.data);
  for (std::int64_t i = 0; i < view.count; ++i) {
    const auto value = static_cast<double>(values[i]);
    stats.zero += value == 0 ? 1 : 0;
    stats.min = std::min(stats.min, value);
    stats.max = std::max(stats.max, value);
  }
  stats.count = static_cast<std::uint64_t>(view.count);
  if (view.count > 0) stats.absmax = std::max(std::abs(stats.min), std::abs(stats.max));
}

/// Integers and truth values: how many, how many of them zero, between which.
void count_integers(const stats::TensorView& view, trace::TensorStats& stats) {
  if (!view.contiguous || view.count > max_counted_integers || view.data == nullptr) return;
  switch (view.dtype) {
    case trace::DType::boolean:
    case trace::DType::uint8:
      return count_integers<std::uint8_t>(view, stats);
    case trace::DType::int8:
      return count_integers<std::int8_t>(view, stats);
    case trace::DType::int16:
      return count_integers<std::int16_t>(view, stats);
    case trace::DType::int32:
      return count_integers<std::int32_t>(view, stats);
    case trace::DType::int64:
      return count_integers<std::int64_t>(view, stats);
    default:
      return;
  }
}

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
    if (!trace::is_floating(view.dtype)) count_integers(view, seen.stats);
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

struct Inputs {
  bool any_known = false;  ///< looked at, or known to have been finite
  bool bad = false;
  bool bad_external = false;  ///< non-finite, and nothing that was seen made it so
};

trace::NonfiniteEvent begin_event(Session& session, const SiteState& site) {
  trace::NonfiniteEvent event;
  event.order = session.anomaly_order.fetch_add(1, std::memory_order_relaxed);
  event.step = session.step.load(std::memory_order_relaxed);
  event.micro_batch = current_micro_batch(session);
  event.site = site.id;
  event.compute_dtype = site.compute_dtype;
  return event;
}

std::string argument_name(const Frame& frame, std::int16_t argument) {
  const auto index = static_cast<std::size_t>(argument);
  return index < frame.op->arguments.size() ? frame.op->arguments[index] : std::string();
}

Inputs add_inputs(Session& session, ThreadState& thread, const Frame& frame, trace::NonfiniteEvent& event) {
  Inputs inputs;
  inputs.bad = frame.input_was_nonfinite;
  inputs.bad_external = frame.input_was_external;
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    auto strong = frame.inputs[i].tensor.lock();
    if (!strong || strong->is_wrapped_number()) continue;  // A number of the program is among the scalars.
    const at::Tensor tensor(std::move(strong));
    const ProducerTable::Entry producer = session.producers.find(frame.inputs[i].address);
    std::int64_t parameter = parameter_at(session, frame.inputs[i].address);
    if (parameter < 0) parameter = named_parameter(session, tensor);  // Before its first gradient.
    // An in-place op has overwritten its target; what it held before is known from its producer only.
    // So is that of x.mul_(x), whose second argument is the same memory.
    const bool overwritten = frame.op->mutates_first &&
                             (frame.inputs[i].argument == 0 || frame.inputs[i].address == frame.inputs[0].address);
    trace::WitnessTensor seen;
    if (overwritten) {
      const c10::TensorImpl& target = *tensor.unsafeGetTensorImpl();
      seen.type = type_of(target);
      // A row of a parameter: weight[i].div_(norm).
      if (parameter < 0 && target.storage_offset() != 0)
        parameter = parameter_at(session, target.unsafe_storage().data());
      seen.type.parameter = parameter;
      seen.finite_before = frame.input_was_finite;
      seen.earlier_step = frame.input_was_kept;
    } else {
      seen = witness(thread, tensor, producer.known ? producer.site : trace::none, parameter);
      // Memory is used again: a value that is bad now and was not when it was last seen written is a new one.
      seen.earlier_step =
          written_in_earlier_step(thread, producer) && (producer.nonfinite || seen.stats.nonfinite() == 0);
    }
    seen.argument = argument_name(frame, frame.inputs[i].argument);
    inputs.any_known |= seen.looked_at || seen.finite_before;
    // Batch normalisation has written its running statistics already; what they held before counts.
    const bool written_here =
        frame.op->has_batch_statistics && !producer.known && seen.argument.starts_with("running_");
    if (seen.looked_at && seen.stats.nonfinite() > 0 && !written_here) {
      inputs.bad = true;
      // Finite when it was last written by an op we saw, non-finite now: something unseen wrote it.
      const bool contradicts = producer.known && producer.checked && !producer.nonfinite;
      inputs.bad_external |= !producer.known || producer.external || contradicts;
    }
    event.inputs.push_back(std::move(seen));
  }
  return inputs;
}

void add_outputs(ThreadState& thread, const SiteState& site, c10::ArrayRef<c10::IValue> outputs,
                 trace::NonfiniteEvent& event) {
  for (const c10::IValue& value : outputs) {
    if (value.isTensor() && value.toTensor().defined() && event.outputs.size() < 4) {
      event.outputs.push_back(witness(thread, value.toTensor(), site.id, trace::none));
    }
  }
}

/// Numbers among the arguments in the order of the schema, those that Python passes as tensors included.
void add_scalars(const Frame& frame, trace::NonfiniteEvent& event) {
  const auto add = [&](std::int16_t argument, double value) {
    event.scalars.push_back(value);
    event.scalar_names.push_back(argument_name(frame, argument));
  };
  std::uint8_t tensor = 0;
  std::size_t other = 0;
  const auto count = static_cast<std::int16_t>(frame.op->arguments.size());
  for (std::int16_t argument = 0; argument < count; ++argument) {
    if (tensor < frame.input_count && frame.inputs[tensor].argument == argument) {
      const auto strong = frame.inputs[tensor++].tensor.lock();
      if (strong && strong->is_wrapped_number()) add(argument, scalar_of(*strong));
    } else if (other < frame.arguments.size()) {
      const c10::IValue& value = frame.arguments[other++];
      if (value.isDouble()) add(argument, value.toDouble());
      if (value.isInt()) add(argument, static_cast<double>(value.toInt()));
    }
  }
}

/// Batch normalisation writes its running statistics without its schema saying so. What they now hold was made here,
/// and is found again in later steps.
void follow_running_statistics(Session& session, const ThreadState& thread, const Frame& frame,
                               const trace::NonfiniteEvent& event) {
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    const std::string name = argument_name(frame, frame.inputs[i].argument);
    if (name != "running_mean" && name != "running_var") continue;
    const bool known = session.producers.find(frame.inputs[i].address).known;
    const bool bad = std::any_of(event.inputs.begin(), event.inputs.end(), [&](const trace::WitnessTensor& input) {
      return input.argument == name && input.stats.nonfinite() != 0;
    });
    if (!bad || known) continue;
    ProducerTable::Entry entry;
    entry.site = frame.site->id;
    entry.clock = thread.clock;
    entry.thread = thread.slot;
    entry.checked = true;
    entry.nonfinite = true;
    session.producers.put(frame.inputs[i].address, entry);
  }
}

bool step_is_known_bad(const Session& session, std::int64_t step) {
  return session.bad_step.load(std::memory_order_acquire) == step;
}

std::size_t events_allowed(const Session& session) {
  return session.bad_steps.load(std::memory_order_relaxed) <= fully_recorded_bad_steps ? max_events_a_step
                                                                                       : events_a_later_bad_step;
}

}  // namespace

bool may_end_nonfinite_gradient(const Frame& frame) noexcept {
  return frame.op->replaces && frame.phase == trace::Phase::backward && !frame.recompute;
}

bool takes_nonfinite(const Session& session, const Frame& frame) noexcept {
  if (frame.op->is_range() || (frame.op->values != Values::computes && !may_end_nonfinite_gradient(frame)))
    return false;
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    const bool overwritten = frame.op->mutates_first && frame.inputs[i].argument == 0;
    if (overwritten ? frame.input_was_nonfinite : session.producers.find(frame.inputs[i].address).nonfinite)
      return true;
  }
  return false;
}

bool written_in_earlier_step(const ThreadState& thread, const ProducerTable::Entry& entry) noexcept {
  return entry.known && entry.thread == thread.slot && thread.clock_step > 0 && entry.clock <= thread.step_clock;
}

void look_before_write(const Session& session, const ThreadState& thread, Frame& frame,
                       c10::ArrayRef<const c10::IValue> inputs) {
  const ProducerTable::Entry before = session.producers.find(frame.inputs[0].address);
  frame.input_was_nonfinite = before.nonfinite;
  frame.input_was_finite = before.checked && !before.nonfinite;
  frame.input_was_kept = written_in_earlier_step(thread, before);
  if (frame.op->values != Values::computes || before.checked || before.nonfinite) return;
  if (frame.phase != trace::Phase::forward) return;
  // Nobody has looked at what it is about to overwrite (data, a selection of several tensors): this is the last moment.
  if (const at::Tensor* const target = tensor_of(inputs[0])) {
    const c10::TensorImpl& impl = *target->unsafeGetTensorImpl();
    stats::TensorView view;
    if (trace::is_floating(dtype_of(impl)) && readable(impl) && view_of(impl, view)) {
      frame.input_was_nonfinite = stats::check_nonfinite(view).nonfinite;
      frame.input_was_finite = !frame.input_was_nonfinite;
    }
  }
  frame.input_was_external = frame.input_was_nonfinite && (!before.known || before.external);
}

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
    const bool absorber = event.kind == trace::OriginKind::absorber;
    const bool first = site && (absorber ? site->absorbers_written : site->events_written) == 0;
    if (site && !bad && !absorber) ++site->harmless_steps;
    if (!(bad && written < allowed) && !first) continue;
    if (site) ++(absorber ? site->absorbers_written : site->events_written);
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

  trace::NonfiniteEvent event = begin_event(session, site);
  const Inputs inputs = add_inputs(session, thread, frame, event);
  event.kind = inputs.bad_external     ? trace::OriginKind::input
               : inputs.bad            ? trace::OriginKind::propagator
               : inputs.any_known      ? trace::OriginKind::producer
               : !event.inputs.empty() ? trace::OriginKind::unknown
                                       : trace::OriginKind::producer;
  add_outputs(thread, site, outputs, event);
  add_scalars(frame, event);
  if (event.kind == trace::OriginKind::producer) {
    event.replay = replay(frame);
  }
  // A NaN of infinities (a row that is masked out, 0 times infinity) begins here as well.
  const bool made_nan = has_nan && std::none_of(event.inputs.begin(), event.inputs.end(),
                                                [](const auto& input) { return input.stats.nan != 0; });
  if (event.kind == trace::OriginKind::producer || made_nan) keep_call(session, frame, event);
  if (inputs.bad && frame.op->meaning == Meaning::multiply) event.times_zero = nonfinite_times_zero(frame, outputs);
  if (site.op->has_batch_statistics) follow_running_statistics(session, thread, frame, event);
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

void absorbed_input(Session& session, ThreadState& thread, const Frame& frame, c10::ArrayRef<c10::IValue> outputs) {
  SiteState& site = *frame.site;
  const std::int64_t step = session.step.load(std::memory_order_relaxed);
  if (site.last_absorbed_step == step || thread.step_events.size() >= events_allowed(session)) return;
  if (site.absorbers_written > harmless_enough && !step_is_known_bad(session, step)) return;
  site.last_absorbed_step = step;
  trace::NonfiniteEvent event = begin_event(session, site);
  add_inputs(session, thread, frame, event);
  // What only selects among values (a clamp) may have removed them already.
  const bool takes = frame.input_was_nonfinite ||
                     std::any_of(event.inputs.begin(), event.inputs.end(),
                                 [](const trace::WitnessTensor& input) { return input.stats.nonfinite() != 0; });
  if (!takes) return;
  event.kind = trace::OriginKind::absorber;
  add_outputs(thread, site, outputs, event);
  // The result of an op that consists of others was looked at inside it and only shows here; some ops have none.
  const bool finite = std::any_of(event.outputs.begin(), event.outputs.end(),
                                  [](const trace::WitnessTensor& output) { return output.looked_at; }) &&
                      std::all_of(event.outputs.begin(), event.outputs.end(),
                                  [](const trace::WitnessTensor& output) { return output.stats.nonfinite() == 0; });
  if (!finite) return;
  add_scalars(frame, event);
  if (step_is_known_bad(session, step)) {
    ++site.absorbers_written;
    write(session, std::move(event));
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
