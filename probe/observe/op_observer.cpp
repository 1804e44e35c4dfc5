#include "probe/observe/op_observer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include "probe/observe/announcements.h"
#include "probe/observe/backward_observer.h"
#include "probe/observe/backward_range.h"
#include "probe/observe/device_looks.h"
#include "probe/observe/kept_calls.h"
#include "probe/observe/kept_inputs.h"
#include "probe/observe/lifecycle.h"
#include "probe/observe/nonfinite.h"
#include "probe/observe/program_access.h"
#include "probe/observe/protocol_events.h"
#include "probe/observe/python_frames.h"
#include "probe/observe/round_trips.h"
#include "probe/observe/scaler_observer.h"
#include "probe/observe/shadow.h"
#include "probe/observe/site_resolver.h"
#include "probe/observe/tensor_access.h"
#include "probe/observe/ticks.h"
#include "probe/observe/write_watch.h"
#include "probe/stats/kernels.h"

namespace ampscope::observe {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

// A program that has run so many ops without a backward pass is not training now; it is left alone until it does.
constexpr std::int64_t patience = 200'000;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) noexcept {
  return (hash ^ value) * 0x9e3779b97f4a7c15ULL;
}

struct AutocastState {
  bool on = false;
  bool cuda = false;
  trace::DType dtype = trace::DType::unknown;
};

AutocastState autocast_now() noexcept {
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
    if (at::autocast::is_autocast_enabled(device)) {
      return {true, device == c10::DeviceType::CUDA, dtype_of(at::autocast::get_autocast_dtype(device))};
    }
  }
  return {};
}

/// Op, modes and types of the arguments: calls that differ in these are different sites.
std::uint64_t key_of(const Frame& frame, Inputs inputs) {
  std::uint64_t key = mix(0x243f6a8885a308d3ULL, frame.op->id);
  key = mix(key, (frame.autocast ? 1U : 0U) | (static_cast<unsigned>(frame.autocast_dtype) << 1) |
                     (c10::GradMode::is_enabled() ? 1U << 9 : 0U) | (static_cast<unsigned>(frame.phase) << 10) |
                     (frame.recompute ? 1U << 14 : 0U));
  for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), Frame::max_inputs); ++i) {
    if (const at::Tensor* tensor = first_tensor(inputs[i])) {
      key = mix(key, static_cast<std::uint64_t>(dtype_of(*tensor->unsafeGetTensorImpl())) + (i << 8));
    }
  }
  return key;
}

void leave(ThreadState& thread, Frame& frame) noexcept {
  if (frame.in_engine) --thread.engine_depth;
  frame.in_engine = false;
  for (std::uint8_t i = 0; i < frame.input_count; ++i)
    frame.inputs[i].tensor.reset();
  frame.input_count = 0;
  frame.arguments.clear();
  frame.keeps_inputs = false;
  if (!frame.before_write.isNone()) frame.before_write = c10::IValue();
}

FrameKind kind_of_range(Meaning meaning) noexcept {
  switch (meaning) {
    case Meaning::optimizer_range:
    case Meaning::zero_grad_range:
    case Meaning::data_range:
      return FrameKind::closed_range;
    default:
      return FrameKind::transparent;
  }
}

void start_range(Session& session, ThreadState& thread, Frame& frame, Inputs inputs) {
  frame.kind = kind_of_range(frame.op->meaning);
  if (thread.in_backward && thread.engine_depth == 0) end_backward(session, thread);
  if (frame.op->meaning == Meaning::scaler_range) {
    if (note_scaler_range(session, thread, frame.op->name, inputs)) return;
    thread.scaler_range = frame.op;
  }
  if (frame.kind != FrameKind::closed_range) return;
  const AutocastState autocast = autocast_now();
  frame.autocast = autocast.on;
  frame.autocast_dtype = autocast.dtype;
  frame.autocast_on_cuda = autocast.cuda;
  if (frame.op->meaning == Meaning::optimizer_range) {
    frame.phase = trace::Phase::optimizer;
    optimizer_range_begins(session, thread);
    // Python's hook names the optimizer in a moment; a range of C++ has only its parameters to tell.
    if (!python_connected() && !thread.object_follows) {
      look_at_fresh_gradients(session, thread, trace::none);
      watch_parameters(session, thread, trace::none);
    }
  } else if (frame.op->meaning == Meaning::data_range) {
    frame.phase = trace::Phase::data;
  } else {
    frame.phase = trace::Phase::optimizer;
    thread.cleared_optimizer = trace::none;
    hold_gradients(session, thread.held_gradients);
  }
  frame.site = resolve_outer(session, thread, frame, key_of(frame, {}), {});
}

void end_range(Session& session, ThreadState& thread, Frame& frame) {
  switch (frame.op->meaning) {
    case Meaning::optimizer_range:
      optimizer_range_ends(session, thread, frame);
      break;
    case Meaning::zero_grad_range:
      if (thread.cleared_optimizer < 0) thread.cleared_optimizer = optimizer_cleared(session, thread.held_gradients);
      // Where gradients are known and all of them are still there, it had none to clear.
      if (thread.cleared_optimizer >= 0 || thread.held_gradients.empty()) {
        gradients_cleared(session, thread, frame.site ? frame.site->id : trace::none, thread.cleared_optimizer);
      }
      break;
    case Meaning::scaler_range:
      if (thread.scaler_range == frame.op) thread.scaler_range = nullptr;
      break;
    case Meaning::schedule_range:
      schedule_stepped(session, thread, reinterpret_cast<std::uintptr_t>(frame.op), schedule_class(frame.op->name), 0,
                       false);
      break;
    case Meaning::hidden_region: {
      trace::HiddenRegion region;
      region.kind = "torch.compile";
      region.name = frame.op->name;
      region.calls = 1;
      region.time_ns = frame.start_ticks ? ticks_to_ns(ticks() - frame.start_ticks) : 0;
      region.first_step = session.step.load(std::memory_order_relaxed);
      session.recorder.hidden_region(region);
      break;
    }
    default:
      break;
  }
}

/// The innermost frame around the top one that has ops of its own.
Frame* enclosing(ThreadState& thread) noexcept {
  for (std::size_t i = thread.depth - 1; i-- > 0;) {
    if (thread.frames[i].kind != FrameKind::transparent) return &thread.frames[i];
  }
  return nullptr;
}

void start_op(Session& session, ThreadState& thread, Frame& frame, const at::RecordFunction& function) {
  const Inputs inputs = function.inputs();
  if (frame.op->meaning == Meaning::evaluate_function) {
    frame.kind = FrameKind::transparent;
    frame.phase = trace::Phase::backward;
    frame.in_engine = true;
    ++thread.engine_depth;
    return;
  }
  switch (stand_of(inputs)) {
    case Stand::fake:
      frame.kind = FrameKind::ignored;
      return;
    case Stand::wrapper:
      // What it does to the real tensors follows inside it.
      frame.kind = FrameKind::transparent;
      return;
    case Stand::real:
      break;
  }
  if (frame.op->meaning == Meaning::hidden_region) frame.kind = FrameKind::transparent;
  if (thread.in_backward && thread.engine_depth == 0) end_backward(session, thread);

  Frame* const outer = enclosing(thread);
  if (outer) {
    frame.phase = outer->phase;
    frame.autocast = outer->autocast;
    frame.autocast_dtype = outer->autocast_dtype;
    frame.autocast_on_cuda = outer->autocast_on_cuda;
    frame.recompute = outer->recompute;
    frame.python_inside = false;
    frame.node_grad_mode = outer->node_grad_mode;
  } else {
    frame.phase = thread.engine_depth > 0 ? trace::Phase::backward : trace::Phase::forward;
  }
  // Grad mode turned on inside a node that ran without it: the program computes its forward again (checkpointing).
  const bool recompute_begins =
      outer && outer->kind == FrameKind::backward_node && !outer->node_grad_mode && c10::GradMode::is_enabled();
  // What the engine does between nodes (a bias' sum over the batch, adding up gradients) belongs to the latest node.
  SiteState* engine_site = !outer && thread.engine_depth > 0 ? thread.last_node : nullptr;
  const bool called_by_user = (!outer && !engine_site) || (outer && outer->python_inside) || recompute_begins ||
                              (outer && outer->kind == FrameKind::closed_range && c10::GradMode::is_enabled());
  if (recompute_begins) {
    frame.recompute = true;
    frame.phase = trace::Phase::forward;
  }
  // A closure that an optimizer calls runs a forward pass of its own.
  if (outer && outer->kind == FrameKind::closed_range && c10::GradMode::is_enabled()) {
    frame.phase = trace::Phase::forward;
  }
  if (called_by_user) {
    const AutocastState autocast = autocast_now();
    frame.autocast = autocast.on;
    frame.autocast_dtype = autocast.dtype;
    frame.autocast_on_cuda = autocast.cuda;
    autocast_is(session, thread, autocast.on);
  }
  if (frame.op->meaning == Meaning::unscale || frame.op->meaning == Meaning::update_scale) {
    frame.phase = trace::Phase::scaler;
  }

  const std::uint64_t key = key_of(frame, inputs);
  SiteState* parent = outer ? outer->site : engine_site;
  // The backward of a program's own function and the step of its own optimizer have lines of their own.
  const bool own_code = outer && (outer->kind == FrameKind::backward_node || outer->kind == FrameKind::closed_range) &&
                        parent && parent->is_python_function && python_connected();
  const bool has_place = called_by_user || own_code;
  if (has_place || !parent) {
    frame.site = resolve_outer(session, thread, frame, key, inputs);
  } else if (!outer) {
    frame.site = resolve_between_nodes(session, thread, frame, *parent, key, inputs);
  } else {
    frame.site = resolve_inner(session, thread, frame, *parent, outer, key, inputs);
  }
  frame.python_inside = frame.op->is_range();
  if (function.seqNr() >= 0 && frame.site && c10::GradMode::is_enabled()) {
    session.sequences.put(at::RecordFunction::currentThreadId(), function.seqNr(), frame.site->id);
  }

  if (frame.phase == trace::Phase::forward && called_by_user && !frame.recompute && c10::GradMode::is_enabled() &&
      !frame.op->mutates_first && session.protocol.parameters_written_hint.load(std::memory_order_relaxed)) {
    forward_continues(session, thread);
  }
  if (!thread.in_backward) note_gradient_access(session, thread, frame, inputs);
  if (frame.op->mutates_first) note_parameter_write(session, thread, frame, inputs);
  if (frame.op->mutates_first && !inputs.empty() && frame.op->values != Values::casts &&
      session.round_trips.any_returned.load(std::memory_order_relaxed)) {
    kept_values_written(session, thread, frame, inputs[0]);
  }
  if (called_by_user && !thread.in_backward && session.protocol.scales.load(std::memory_order_relaxed)) {
    note_loss_read(session, thread, frame, inputs);
  }

  if (may_watch_write(session, frame, inputs)) watch_write(session, thread, frame, inputs);

  if (thread.optimizer_ranges > 0 && frame.op->name.starts_with("aten::_fused_")) {
    note_fused_kernel(thread, frame, inputs);
    note_fused_write(thread, inputs);
  }
  // Only few have a meaning, and looking for the same op further out takes a walk over all frames.
  const bool means = frame.op->meaning != Meaning::plain && !thread.repeats_outer_op();
  switch (means ? frame.op->meaning : Meaning::plain) {
    case Meaning::unscale:
      start_unscale(session, thread, frame, inputs);
      break;
    case Meaning::update_scale:
      start_update(session, thread, frame, inputs);
      break;
    case Meaning::ones_like:
      if (called_by_user && !inputs.empty()) {
        const at::Tensor* root = tensor_of(inputs[0]);
        thread.root_gradient_made |= root && root->requires_grad();
        note_loss(session, thread, inputs[0]);
      }
      break;
    case Meaning::multiply:
      note_loss_scaling(session, thread, frame, inputs);
      if (!frame.site || !frame.site->scales_loss) note_divisor(thread, frame, inputs);
      break;
    case Meaning::divide:
      note_divisor(thread, frame, inputs);
      break;
    default:
      break;
  }

  const Values values = frame.op->values;
  if (session.looks_at_outputs() && (values == Values::computes || values == Values::casts)) {
    const bool callable = !frame.op->mutates || keep_before_write(session, frame, inputs);
    keep_inputs(frame, inputs, callable && !draws(*frame.op, inputs));
    if (frame.op->mutates_first && frame.input_count > 0) look_before_write(session, thread, frame, inputs);
  } else if ((values == Values::passes || values == Values::views || values == Values::casts) &&
             !session.looks_at_outputs()) {
    keep_address(frame, inputs);
  } else if (may_end_nonfinite_gradient(frame)) {
    keep_inputs(frame, inputs, false);
    if (frame.op->mutates_first && frame.input_count > 0)
      frame.input_was_nonfinite = session.producers.find(frame.inputs[0].address).nonfinite;
  } else if (values == Values::passes || values == Values::views) {
    keep_inputs(frame, inputs.slice(0, std::min<std::size_t>(inputs.size(), 1)), false);
  }
}

/// Whether the cast can overflow: fp32 → fp16 can, int64 → fp16 as well, fp16 → fp32 cannot.
bool narrows(const Frame& frame, trace::DType result) {
  if (!trace::is_floating(result)) return false;
  const double limit = trace::float_limits(result).max;
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    auto strong = frame.inputs[i].tensor.lock();
    if (!strong) continue;
    const trace::DType from = dtype_of(*strong);
    if (from == trace::DType::int64 || from == trace::DType::int32)
      return limit < std::numeric_limits<std::int32_t>::max();
    if (trace::is_floating(from) && trace::float_limits(from).max > limit) return true;
  }
  return false;
}

/// Where the values come from that an op moves: copy_ moves its second argument into its first.
ProducerTable::Entry source_of(const Session& session, const Frame& frame) {
  const std::size_t source = frame.op->values == Values::casts && frame.op->mutates_first ? 1 : 0;
  return source < frame.input_count ? session.producers.find(frame.inputs[source].address) : ProducerTable::Entry{};
}

/// Whether the result at `address` is an argument itself: a cast that has nothing to cast, dropout in evaluation. Who
/// made it stays who made it.
bool hands_on(const Frame& frame, const void* address) noexcept {
  if (frame.op->mutates) return false;
  return std::any_of(frame.inputs.begin(), frame.inputs.begin() + frame.input_count,
                     [address](const InputRef& input) { return input.address == address; });
}

/// What the outputs of one call showed.
struct Seen {
  bool nonfinite = false;
  bool nan = false;
  float absmax = std::numeric_limits<float>::quiet_NaN();  ///< NaN: none was looked at
};

/// New memory where a loss scale was: the scaler that had it is gone, and what is written there is not its scale.
void forget_scale_at(Session& session, const c10::TensorImpl& tensor, const void* address) {
  if (tensor.numel() != 1 || session.scale_tensors.find(address) < 0) return;
  session.scale_tensors.put(address, trace::none, 0);
  const std::lock_guard lock(session.protocol.mutex);
  session.protocol.scaler_by_scale_tensor.erase(address);
}

void end_output(Session& session, ThreadState& thread, Frame& frame, const at::Tensor& tensor, Seen& seen) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  const void* address = address_of(impl);
  if (!address) return;
  const trace::DType dtype = dtype_of(impl);
  ProducerTable::Entry entry = session.producers.find(address);
  const bool made_inside = entry.known && entry.thread == thread.slot && entry.clock > frame.start_clock;
  // Looked at already when the op consists of others, or is the one that autocast calls again. Any other op may have
  // let an inner one prepare the memory (addmm copies the bias there first) before its own kernel wrote to it.
  if (made_inside && (frame.op->composite || frame.op->is_range() || frame.same_op_inside)) return;
  const Values values = frame.op->values;
  if (values == Values::uninitialised) {
    forget_scale_at(session, impl, address);
    session.producers.forget(address);
    return;
  }
  const bool to_look_at = session.looks_at_outputs() && trace::is_floating(dtype) &&
                          (values == Values::computes || (values == Values::casts && narrows(frame, dtype)) ||
                           (may_end_nonfinite_gradient(frame) && takes_nonfinite(session, frame)));
  const bool looked_at = to_look_at && readable(impl);
  const bool looked_at_later = to_look_at && !looked_at && on_device(session, impl);
  ProducerTable::Entry made;
  made.site = frame.site->id;
  made.clock = thread.clock;
  made.thread = thread.slot;
  made.kept = frame.op->mutates_first && entry.known && (entry.kept || written_in_earlier_step(thread, entry));
  if (values == Values::views || values == Values::passes || values == Values::casts) {
    const ProducerTable::Entry from = source_of(session, frame);
    if (values == Values::views || hands_on(frame, address)) {
      // A view of memory nobody was seen to write stays unknown, so that data are told from results.
      if (!from.known) return;
      made = from;
      session.producers.put(address, made);
      return;
    }
    made.of_kept = !from.known || from.kept || from.of_kept || written_in_earlier_step(thread, from);
    if (values == Values::passes || (!looked_at && !looked_at_later && frame.input_count > 0)) {
      made.external = !from.known || from.external;
      made.nonfinite = from.nonfinite;
      // What selects from one tensor, or widens it, leaves finite values finite.
      made.checked = from.checked && !from.nonfinite && (values == Values::casts || frame.op->single_source);
    }
  }
  if (looked_at_later) look_at_output(session, thread, frame, impl, made);
  stats::TensorView view;
  if (looked_at && view_of(impl, view)) {
    stats::Sentinel sentinel;
    if (session.full_numerics.load(std::memory_order_relaxed)) {
      thread.scratch.reset();
      stats::accumulate(view, thread.scratch);
      sentinel.nonfinite = thread.scratch.nonfinite() > 0;
      sentinel.absmax = static_cast<float>(thread.scratch.absmax);
      seen.nan |= thread.scratch.nan > 0;
      session.recorder.numerics(*thread.lane, session.step.load(std::memory_order_relaxed), frame.site->id,
                                session.numerics_weight.load(std::memory_order_relaxed), dtype, thread.scratch);
    } else {
      sentinel = stats::check_nonfinite(view);
      if (sentinel.nonfinite) seen.nan |= stats::count_nonfinite(view).nan > 0;
    }
    made.checked = true;
    made.nonfinite = sentinel.nonfinite;
    frame.site->counters->checked_calls.add(1);
    if (std::isfinite(sentinel.absmax) && sentinel.absmax > frame.site->counters->absmax.get()) {
      frame.site->counters->absmax.set(sentinel.absmax);
    }
    if (dtype == trace::DType::float16 && frame.phase == trace::Phase::backward && !frame.recompute) {
      backward_range.note(sentinel.nonfinite ? std::numeric_limits<float>::infinity() : sentinel.absmax);
    }
    seen.nonfinite |= sentinel.nonfinite;
    if (!(sentinel.absmax <= seen.absmax)) seen.absmax = sentinel.absmax;
  }
  if (!frame.op->mutates) forget_scale_at(session, impl, address);
  session.producers.put(address, made);
  // Written through a view into the middle of a tensor: whoever reads the whole of it meets what was written here.
  if (frame.op->mutates_first && made.nonfinite && impl.storage_offset() != 0) {
    if (const void* whole = impl.unsafe_storage().data(); whole) session.producers.put(whole, made);
  }
}

/// Whether there can be something to absorb. A gradient that is cleaned has made the step a bad one as it arrived.
bool nonfinite_seen_in_step(const Session& session, const ThreadState& thread, const Frame& frame) noexcept {
  return (!thread.step_events.empty() && thread.step_events_step == thread.clock_step) ||
         (may_end_nonfinite_gradient(frame) &&
          session.bad_step.load(std::memory_order_relaxed) == session.step.load(std::memory_order_relaxed));
}

void end_op(Session& session, ThreadState& thread, Frame& frame, const at::RecordFunction& function) {
  const auto outputs = c10::ArrayRef<c10::IValue>(function.outputs());
  // The record of an operator that threw ends while the exception passes it, without outputs. One that a destructor
  // calls on the way has them.
  if (outputs.empty() && std::uncaught_exceptions() > 0) {
    frame.site->counters->count_failure(session.step.load(std::memory_order_relaxed));
  }
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  Seen seen;
  const auto visit = [&](const at::Tensor& tensor) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (impl.has_symbolic_sizes_strides() || impl.is_python_dispatch()) return;
    const std::int64_t count = impl.numel();
    elements += count;
    bytes += count * static_cast<std::int64_t>(impl.dtype_initialized() ? impl.itemsize() : 0);
    end_output(session, thread, frame, tensor, seen);
  };
  for (const c10::IValue& value : outputs) {
    if (const at::Tensor* tensor = tensor_of(value)) {
      visit(*tensor);
      if (frame.op->only_first_result) break;
    } else if (value.isTensorList()) {
      for (const c10::IValue& entry : value.toListRef()) {
        if (const at::Tensor* listed = tensor_of(entry)) visit(*listed);
      }
    }
  }
  if (seen.nonfinite) {
    confirm_sites(session, thread, outputs);
    if (function.seqNr() >= 0 && c10::GradMode::is_enabled()) {
      session.sequences.put(at::RecordFunction::currentThreadId(), function.seqNr(), frame.site->id);
    }
  }
  if (thread.write.function == frame.function || session.full_numerics.load(std::memory_order_relaxed)) {
    watch_result(session, thread, frame, outputs);
  }
  SiteState& site = *frame.site;
  // Of the program's own calls; what autocast casts lies inside another operator.
  if ((frame.op->values == Values::casts || frame.op->values == Values::passes) && state() == State::recording) {
    const Frame* const outer = enclosing(thread);
    if (!outer || outer->kind != FrameKind::op || outer->python_inside) cast_ended(session, thread, frame, outputs);
  }
  thread.recent.add(session.step.load(std::memory_order_relaxed), site.id, seen.absmax, seen.nonfinite);
  site.counters->count_call(session.step.load(std::memory_order_relaxed), elements, bytes);
  if (frame.start_ticks) {
    site.counters->timed_calls.add(1);
    site.counters->timed_ns.add(ticks_to_ns(ticks() - frame.start_ticks));
  }
  if (site.definition) publish(session, site, outputs);
  if (session.comparison_weight.load(std::memory_order_relaxed) > 0 && frame.op->values == Values::computes &&
      frame.op->has_schema && !frame.op->composite && !frame.compared_inside && !frame.same_op_inside) {
    compare_in_higher_precision(session, thread, frame, outputs);
  }
  if (frame.op->meaning == Meaning::host_read) note_number_read(session, frame, outputs);
  if (seen.nonfinite) {
    nonfinite_output(session, thread, frame, outputs, seen.nan);
  } else if (nonfinite_seen_in_step(session, thread, frame) && takes_nonfinite(session, frame)) {
    absorbed_input(session, thread, frame, outputs);
  } else if (!thread.step_events.empty() || session.bad_step.load(std::memory_order_relaxed) >= 0) {
    settle_events(session, thread);
  }
  if (thread.depth >= 2 && thread.frames[thread.depth - 2].op == frame.op) {
    thread.frames[thread.depth - 2].same_op_inside = true;
  }
  if (frame.op->meaning == Meaning::hidden_region) end_range(session, thread, frame);
  if (frame.op->meaning != Meaning::unscale && frame.op->meaning != Meaning::update_scale && !frame.op->mutates_first) {
    return;
  }
  if (thread.repeats_outer_op()) return;
  if (frame.op->meaning == Meaning::unscale) end_unscale(session, thread, frame);
  if (frame.op->meaning == Meaning::update_scale) end_update(session, thread, frame);
  note_scale_assignment(session, thread, frame, outputs);
}

/// Marks the thread as inside our code, so that ops we cause are not observed, and counts the time we take.
class Inside {
 public:
  Inside(ThreadState& thread, bool timed, bool full) : thread_(thread), start_(timed ? ticks() : 0), full_(full) {
    thread_.busy = true;
  }
  ~Inside() {
    thread_.busy = false;
    if (!start_) return;
    const auto spent = static_cast<std::int64_t>(ticks() - start_);
    (full_ ? thread_.own_ticks_full : thread_.own_ticks) += spent;
    thread_.step_ticks += spent;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  ThreadState& thread_;
  std::uint64_t start_;
  bool full_;
};

void on_start(const at::RecordFunction& function) {
  const State now = state();
  if (now == State::off) {
    announce(Announced::nothing);
    return;
  }
  if (now == State::asleep) {
    if (function.scope() != at::RecordScope::BACKWARD_FUNCTION) {
      // Here and not where it fell asleep, which may have been the child of a fork, where torch's lock may be held.
      announce(Announced::nodes);
      return;
    }
    wake();
  }
  Session* current = session();
  if (!current || current->recorder.failed()) {
    announce(Announced::nothing);
    return;
  }
  Session& s = *current;
  ThreadState* found = thread_state(s);
  if (!found || found->busy) return;
  ThreadState& thread = *found;
  const bool timed = s.timed.load(std::memory_order_relaxed);
  const Inside inside(thread, timed, s.full_numerics.load(std::memory_order_relaxed));
  if (now != State::recording) {
    if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
      if (!begin_recording(s)) return;
    } else if (s.events_before_backward.fetch_add(1, std::memory_order_relaxed) > patience) {
      set_state(State::asleep);
      return;
    }
  }
  if (thread.depth == ThreadState::max_depth) {
    ++thread.overflow;
    return;
  }
  Frame& frame = thread.frames[thread.depth++];
  frame.function = &function;
  frame.site = nullptr;
  frame.last_inside = nullptr;
  frame.site_from = SiteFrom::parent;
  frame.op = op_info(function.name(), function.overload_name());
  frame.kind = FrameKind::op;
  frame.phase = trace::Phase::other;
  frame.autocast = false;
  frame.autocast_dtype = trace::DType::unknown;
  frame.recompute = false;
  frame.in_engine = false;
  frame.same_op_inside = false;
  frame.compared_inside = false;
  frame.python_inside = false;
  frame.node_grad_mode = false;
  frame.input_was_nonfinite = false;
  frame.input_was_finite = false;
  frame.input_was_kept = false;
  frame.input_was_external = false;
  frame.variable = nullptr;
  frame.adds_gradient = false;
  frame.optimizer = trace::none;
  if (const std::int64_t step = s.step.load(std::memory_order_relaxed); step != thread.clock_step) {
    thread.clock_step = step;
    thread.step_clock = thread.clock;
    collect_device_looks(s, thread);
  }
  frame.start_clock = thread.clock++;
  frame.start_ticks = timed || frame.op->meaning == Meaning::hidden_region ? ticks() : 0;
  ++thread.events;
  if (thread.depth > 1 && thread.frames[thread.depth - 2].kind == FrameKind::ignored) {
    frame.kind = FrameKind::ignored;
    return;
  }
  switch (function.scope()) {
    case at::RecordScope::BACKWARD_FUNCTION:
      start_node(s, thread, frame, function);
      break;
    case at::RecordScope::USER_SCOPE:
      start_range(s, thread, frame, function.inputs());
      break;
    default:
      start_op(s, thread, frame, function);
  }
}

void on_end(const at::RecordFunction& function) {
  const State now = state();
  if (now == State::off || now == State::asleep) return;
  Session* current = session();
  if (!current || current->recorder.failed()) return;
  Session& s = *current;
  ThreadState* found = thread_state(s);
  if (!found || found->busy) return;
  ThreadState& thread = *found;
  if (thread.overflow > 0 && (thread.depth == 0 || thread.frames[thread.depth - 1].function != &function)) {
    --thread.overflow;
    return;
  }
  // Ends whose start was not seen (observation began in between, or an asynchronous range ended on another thread)
  // match no frame; frames above the matching one have been left by an exception.
  std::size_t match = thread.depth;
  while (match > 0 && thread.frames[match - 1].function != &function)
    --match;
  if (match == 0) return;
  const Inside inside(thread, s.timed.load(std::memory_order_relaxed), s.full_numerics.load(std::memory_order_relaxed));
  while (thread.depth > match)
    leave(thread, thread.frames[--thread.depth]);
  Frame& frame = thread.frames[thread.depth - 1];
  if (frame.kind == FrameKind::ignored) {
    --thread.depth;
    return;
  }
  switch (function.scope()) {
    case at::RecordScope::BACKWARD_FUNCTION:
      end_node(s, thread, frame);
      break;
    case at::RecordScope::USER_SCOPE:
      end_range(s, thread, frame);
      if (frame.site) end_op(s, thread, frame, function);
      break;
    default:
      if (frame.site) {
        end_op(s, thread, frame, function);
      } else if (frame.op->meaning == Meaning::hidden_region) {
        end_range(s, thread, frame);
      }
  }
  leave(thread, frame);
  --thread.depth;
  if (thread.events >= 4096) flush_counts(s, thread);
}

/// A fault of ours ends observation, never the run: torch would swallow an exception with a warning for every op.
template <typename Body>
void guarded(Body&& body) noexcept {
  try {
    body();
  } catch (const std::exception& error) {
    give_up(error.what());
  } catch (...) {
    give_up("an unknown exception inside the probe");
  }
}

}  // namespace

std::unique_ptr<at::ObserverContext> start_callback(const at::RecordFunction& function) {
  guarded([&] { on_start(function); });
  return nullptr;
}

void end_callback(const at::RecordFunction& function, at::ObserverContext*) {
  guarded([&] { on_end(function); });
}

}  // namespace ampscope::observe
