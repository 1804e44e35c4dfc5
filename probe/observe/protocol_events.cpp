#include "probe/observe/protocol_events.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "probe/observe/backward_range.h"
#include "probe/observe/python_frames.h"
#include "probe/observe/step_plan.h"
#include "probe/observe/tensor_access.h"
#include "probe/observe/ticks.h"
#include "probe/record/series.h"

namespace ampscope::observe {
namespace {

namespace flag = trace::event_flag;
using trace::EventKind;

/// Writes the steps that have become complete. The caller holds the protocol's lock.
void write_closed(Session& session, ThreadState* thread, record::StepLedger::Closed& step) {
  if (step.new_pattern) session.recorder.define(std::move(*step.new_pattern));
  if (thread && thread->lane) session.recorder.step_finished(*thread->lane, step.step, step.pattern);
}

void mark_bad(Session& session) {
  Protocol& p = session.protocol;
  if (p.step_was_bad) return;
  p.step_was_bad = true;
  session.bad_steps.fetch_add(1, std::memory_order_relaxed);
  session.bad_step.store(p.ledger.step(), std::memory_order_release);
  session.recorder.urgent();
}

void end_step(Session& session, ThreadState& thread) {
  Protocol& p = session.protocol;
  const std::int64_t step = p.ledger.step();
  const std::int64_t now = record::monotonic_ns();
  if (session.budget) {
    // The writer's thread takes processor time that the program may want as well.
    const std::int64_t writer_ns = session.recorder.writer_cpu_ns();
    const std::int64_t own_ns =
        ticks_to_ns(static_cast<std::uint64_t>(thread.step_ticks)) + writer_ns - p.writer_ns_counted;
    p.writer_ns_counted = writer_ns;
    thread.step_ticks = 0;
    const bool timed = p.step_started_ns != 0 && now > p.step_started_ns;
    session.budget->finished(timed ? static_cast<double>(now - p.step_started_ns) * 1e-9 : 0,
                             static_cast<double>(own_ns) * 1e-9);
  }
  if (p.step_started_ns != 0) {
    session.recorder.series(*thread.lane, record::Series::step_time, trace::none, step,
                            static_cast<double>(now - p.step_started_ns));
  }
  p.step_started_ns = now;
  if (p.gradient_norm_known) {
    session.recorder.series(*thread.lane, record::Series::gradient_norm, trace::none, step,
                            std::sqrt(p.squared_gradient_norm));
  }
  p.squared_gradient_norm = 0;
  p.gradient_norm_known = false;
  p.micro_batch = 0;
  p.parameters_written = false;
  p.parameters_written_hint.store(false, std::memory_order_relaxed);
  p.ledger.end_step();
  if (p.step_was_bad) {
    // The next steps show whether it goes on, so they are looked at in full.
    session.full_until.store(step + 3, std::memory_order_relaxed);
    p.step_was_bad = false;
  }
  session.step.store(p.ledger.step(), std::memory_order_relaxed);
  // Sites are predicted from the sequence of the calls; at first, and every now and then, they are looked up.
  session.walks_frames.store(p.ledger.step() < 4 || p.ledger.step() % 64 == 0, std::memory_order_relaxed);
  plan_step(session, p.ledger.step());
  const bool full = session.full_numerics.load(std::memory_order_relaxed);
  const bool timed = full || session.budget || p.ledger.step() < 4 || p.ledger.step() % 16 == 0;
  session.timed.store(timed, std::memory_order_relaxed);
  session.recorder.count_step(full    ? record::StepCost::full
                              : timed ? record::StepCost::timed
                                      : record::StepCost::untimed);
}

void add_event(Session& session, ThreadState& thread, const trace::ProtocolEvent& event) {
  Protocol& p = session.protocol;
  p.ledger.add(event);
  p.ledger.use_closed([&](record::StepLedger::Closed& step) { write_closed(session, &thread, step); });
}

/// An optimizer that steps again with new gradients: the program has begun another step without our noticing.
void end_step_if_repeated(Session& session, ThreadState& thread, std::int64_t optimizer) {
  Protocol& p = session.protocol;
  if (p.explicit_steps) return;
  if (p.ledger.begun_again(optimizer)) {
    if (p.primary_optimizer != optimizer) p.primary_settled = true;
    p.primary_optimizer = optimizer;
    end_step(session, thread);
  }
}

std::int64_t new_optimizer(Session& session, const std::string& class_name) {
  Protocol& p = session.protocol;
  trace::Optimizer optimizer;
  optimizer.id = static_cast<std::int64_t>(p.optimizers.size());
  optimizer.name = class_name;
  p.optimizers.push_back(optimizer);
  session.recorder.define(optimizer);
  return optimizer.id;
}

std::int64_t new_scaler(Session& session, const std::string& implementation) {
  Protocol& p = session.protocol;
  trace::Scaler scaler;
  scaler.id = static_cast<std::int64_t>(p.scalers.size());
  scaler.implementation = implementation;
  p.scalers.push_back(scaler);
  session.recorder.define(scaler);
  return scaler.id;
}

void complete_optimizer(Session& session, std::int64_t id, const std::string& class_name, bool fused,
                        double learning_rate, std::int64_t site) {
  Protocol& p = session.protocol;
  trace::Optimizer& optimizer = p.optimizers[static_cast<std::size_t>(id)];
  bool changed = false;
  if (optimizer.name.empty() && !class_name.empty()) {
    optimizer.name = class_name;
    changed = true;
  }
  if (fused && !optimizer.fused) {
    optimizer.fused = true;
    changed = true;
  }
  if (std::isfinite(learning_rate) && !optimizer.settings.contains("lr")) {
    optimizer.settings["lr"] = learning_rate;
    changed = true;
  }
  if (!optimizer.source.known() && site >= 0) {
    // The range's own site tells where step is called; it is written by now, so its place is copied at creation.
    const auto found = session.protocol.sources_by_site.find(site);
    if (found != session.protocol.sources_by_site.end()) {
      optimizer.source = found->second;
      changed = true;
    }
  }
  if (changed) session.recorder.define(optimizer);
}

void set_scale(Protocol& p, double scale) {
  p.scale = scale;
  p.scale_known = true;
  p.scales.store(scale != 1, std::memory_order_relaxed);
}

/// Whether a factor is the inverse of the loss scale of some scaler, up to rounding, or that of the scale times a count
/// (of micro-batches, of processes).
bool undoes(const Protocol& p, double factor) {
  const auto undoes_scale = [factor](double scale) {
    if (scale == 1 || scale == 0) return false;
    // A small scale times a count is a number like others.
    const double largest_count = scale >= 1024 ? 64 : 1;
    const double count = 1 / (factor * scale);
    const double whole = std::round(count);
    return whole >= 1 && whole <= largest_count && std::abs(count - whole) < 2e-6 * whole;
  };
  return undoes_scale(p.scale) || std::any_of(p.scale_of.begin(), p.scale_of.end(), undoes_scale);
}

void set_scale_of(Protocol& p, std::int64_t scaler, double scale) {
  if (scaler < 0) return;
  const auto index = static_cast<std::size_t>(scaler);
  if (p.scale_of.size() <= index) p.scale_of.resize(index + 1, 1);
  p.scale_of[index] = scale;
}

std::uint32_t autocast_flags(bool autocast, trace::DType dtype) {
  if (!autocast) return 0;
  std::uint32_t flags = flag::autocast;
  if (dtype == trace::DType::float16) flags |= flag::autocast_float16;
  if (dtype == trace::DType::bfloat16) flags |= flag::autocast_bfloat16;
  return flags;
}

}  // namespace

std::int64_t owner_of(Session& session, std::int64_t parameter) {
  if (parameter < 0) return trace::none;
  const std::lock_guard lock(session.protocol.mutex);
  return session.protocol.parameters[static_cast<std::size_t>(parameter)].optimizer;
}

std::int64_t optimizer_of_object(Session& session, std::uintptr_t object) {
  const std::lock_guard lock(session.protocol.mutex);
  const auto known = session.protocol.optimizer_by_object.find(object);
  return known == session.protocol.optimizer_by_object.end() ? trace::none : known->second;
}

void assign_owner(Session& session, std::int64_t parameter, std::int64_t optimizer) {
  if (parameter < 0) return;
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  trace::Parameter& owned = p.parameters[static_cast<std::size_t>(parameter)];
  if (owned.optimizer == optimizer) return;
  owned.optimizer = optimizer;
  session.recorder.define(owned);
}

bool unscaled_in_this_step(Session& session, std::int64_t optimizer) {
  const std::lock_guard lock(session.protocol.mutex);
  return session.protocol.ledger.contains(EventKind::unscale, optimizer);
}

std::size_t optimizer_count(Session& session) {
  const std::lock_guard lock(session.protocol.mutex);
  return session.protocol.optimizers.size();
}

bool is_fused(Session& session, std::int64_t optimizer) {
  const std::lock_guard lock(session.protocol.mutex);
  const auto& optimizers = session.protocol.optimizers;
  return optimizer >= 0 && static_cast<std::size_t>(optimizer) < optimizers.size() &&
         optimizers[static_cast<std::size_t>(optimizer)].fused;
}

bool is_scale_tensor(Session& session, const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const c10::TensorImpl& impl = *value.toTensor().unsafeGetTensorImpl();
  if (!has_values(impl) || impl.numel() != 1) return false;
  return session.scale_tensors.find(address_of(impl)) >= 0;
}

double current_scale(Session& session) {
  const std::lock_guard lock(session.protocol.mutex);
  return session.protocol.scale;
}

std::int64_t gradients_divided_at(Session& session, std::int64_t optimizer) {
  const std::lock_guard lock(session.protocol.mutex);
  std::int64_t site = trace::none;
  for (const trace::ProtocolEvent& event : session.protocol.ledger.events()) {
    if (event.kind == EventKind::backward || event.kind == EventKind::unscale) site = trace::none;
    const bool divides = event.kind == EventKind::gradient_read && (event.flags & flag::by_inverse_scale) != 0;
    if (divides && (optimizer < 0 || event.object < 0 || event.object == optimizer)) site = event.site;
  }
  return site;
}

double pending_scale(Session& session, std::int64_t optimizer) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  if (!p.scale_known) return 1;
  // Where backward passes are not seen, they are what they were.
  bool scaled = !session.sees_operators() && p.last_backward_scaled;
  for (const trace::ProtocolEvent& event : p.ledger.events()) {
    switch (event.kind) {
      case EventKind::backward:
        // A pass of another optimizer's loss behind the unscaling does not scale what has been unscaled.
        if (event.flags & flag::scaled) scaled = true;
        break;
      case EventKind::unscale:
        if (optimizer < 0 || event.object == optimizer) return 1;
        break;
      case EventKind::gradient_write:
        return 1;
      default:
        break;
    }
  }
  return scaled ? p.scale : 1;
}

void add_gradient_norm(Session& session, double sum_squares) {
  const std::lock_guard lock(session.protocol.mutex);
  session.protocol.squared_gradient_norm += sum_squares;
  session.protocol.gradient_norm_known = true;
}

void loss_scaled(Session& session, ThreadState& thread, std::int64_t site, const void* scale_tensor, double scale) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  p.scaler_in_use = true;
  if (std::isfinite(scale)) set_scale(p, scale);
  std::int64_t scaler = trace::none;
  if (scale_tensor) {
    const auto known = p.scaler_by_scale_tensor.find(scale_tensor);
    // A scaler that has just made its scale may have got the memory of one that is gone.
    if (known != p.scaler_by_scale_tensor.end() && !thread.scaler_made) {
      scaler = known->second;
    } else {
      scaler = new_scaler(session, "");
      p.scaler_by_scale_tensor[scale_tensor] = scaler;
      session.scale_tensors.put(scale_tensor, scaler, 1);
    }
    if (thread.scaler_restored) {
      p.scalers[static_cast<std::size_t>(scaler)].restored = true;
      session.recorder.define(p.scalers[static_cast<std::size_t>(scaler)]);
    }
    thread.scaler_made = thread.scaler_restored = false;
  }
  if (std::isfinite(scale)) set_scale_of(p, scaler, scale);
  add_event(session, thread, {.kind = EventKind::scale_loss, .object = scaler, .site = site});
}

void backward_begins(Session& session, ThreadState& thread, std::int64_t root_site, bool autocast,
                     trace::DType autocast_dtype, bool create_graph) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  if (p.parameters_written && !p.optimizer_seen && !p.explicit_steps) end_step(session, thread);
  if (p.step_started_ns == 0) p.step_started_ns = record::monotonic_ns();
  trace::ProtocolEvent event{.kind = EventKind::backward, .site = root_site};
  event.flags = autocast_flags(autocast, autocast_dtype) | (create_graph ? flag::create_graph : 0U);
  add_event(session, thread, event);
}

void backward_ends(Session& session, ThreadState& thread) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  std::uint32_t flags = thread.backward_flags;
  if (thread.backward_scaled) flags |= flag::scaled;
  if (!thread.backward_accumulated) flags |= flag::gradients_only;
  if (thread.backward_accumulated) p.last_backward_scaled = thread.backward_scaled;
  p.ledger.amend(EventKind::backward, flags, thread.backward_optimizers, thread.backward_added);
  p.gradients_accumulated |= thread.backward_accumulated;
  p.only_takes_gradients.store(!p.gradients_accumulated, std::memory_order_relaxed);
  // Before the first update it is not known whether a pass that only takes gradients is the training or a part of it.
  const bool trains = thread.backward_accumulated || (!p.gradients_accumulated && p.ledger.step() > 0);
  if (trains) {
    // On a device the scale is read only when the scaler itself reads it: losses before that are not known.
    if (thread.has_pending_loss && (p.scale_known || !thread.backward_scaled)) {
      const double scale = thread.backward_scaled ? p.scale : 1;
      session.recorder.series(*thread.lane, record::Series::loss, trace::none, p.ledger.step(),
                              thread.pending_loss / scale);
    }
    ++p.micro_batch;
  }
  thread.has_pending_loss = false;
}

std::int64_t optimizer_owning(Session& session, std::int64_t parameter, std::uintptr_t object,
                              const std::string& class_name) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  std::int64_t id = trace::none;
  if (object) {
    const auto known = p.optimizer_by_object.find(object);
    if (known != p.optimizer_by_object.end()) id = known->second;
  }
  if (id < 0 && parameter >= 0) {
    id = p.parameters[static_cast<std::size_t>(parameter)].optimizer;
    // Known from its parameters and told under another identity: the optimizer was replaced (a resume).
    if (id >= 0 && object &&
        std::any_of(p.optimizer_by_object.begin(), p.optimizer_by_object.end(),
                    [id](const auto& entry) { return entry.second == id; })) {
      id = trace::none;
    }
  }
  if (id < 0) {
    id = new_optimizer(session, class_name);
    if (object && p.optimizers_restored.erase(object) > 0) {
      p.optimizers[static_cast<std::size_t>(id)].restored = true;
      session.recorder.define(p.optimizers[static_cast<std::size_t>(id)]);
    }
  }
  if (object) p.optimizer_by_object[object] = id;
  complete_optimizer(session, id, class_name, false, std::numeric_limits<double>::quiet_NaN(), trace::none);
  if (parameter >= 0 && p.parameters[static_cast<std::size_t>(parameter)].optimizer != id) {
    p.parameters[static_cast<std::size_t>(parameter)].optimizer = id;
    session.recorder.define(p.parameters[static_cast<std::size_t>(parameter)]);
  }
  return id;
}

void gradients_unscaled(Session& session, ThreadState& thread, std::int64_t optimizer, std::int64_t site, double scale,
                        bool found_inf, bool replaced) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  end_step_if_repeated(session, thread, optimizer);
  p.scaler_in_use = true;
  if (std::isfinite(scale)) set_scale(p, scale);
  if (found_inf) mark_bad(session);
  // One call per device and type; the ledger wants one event an optimizer.
  if (!p.ledger.events().empty()) {
    const trace::ProtocolEvent& last = p.ledger.events().back();
    if (last.kind == EventKind::unscale && last.object == optimizer && last.site == site) {
      p.ledger.amend(EventKind::unscale, found_inf ? flag::found_inf : 0U, 0);
      return;
    }
  }
  trace::ProtocolEvent event{.kind = EventKind::unscale, .object = optimizer, .site = site};
  if (found_inf) event.flags |= flag::found_inf;
  if (replaced) event.flags |= flag::replaced;
  add_event(session, thread, event);
}

std::int64_t scale_updated(Session& session, ThreadState& thread, trace::ScalerUpdate update, const void* scale_tensor,
                           std::int64_t site, std::uintptr_t object, const std::string& implementation) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  std::int64_t id = trace::none;
  if (const auto known = object ? p.scaler_by_object.find(object) : p.scaler_by_object.end();
      known != p.scaler_by_object.end()) {
    id = known->second;
  } else if (const auto by_tensor = p.scaler_by_scale_tensor.find(scale_tensor);
             by_tensor != p.scaler_by_scale_tensor.end()) {
    // Memory of a scaler that is gone may have become the scale of a new one.
    const bool told_otherwise =
        object && std::any_of(p.scaler_by_object.begin(), p.scaler_by_object.end(),
                              [&](const auto& entry) { return entry.second == by_tensor->second; });
    if (!told_otherwise) id = by_tensor->second;
  }
  if (id < 0) id = new_scaler(session, implementation);
  if (object && p.scaler_by_object.emplace(object, id).second) {
    // Its construction was told under the object's identity, before anything else was known of it.
    if (const auto made = p.scalers_made.find(object); made != p.scalers_made.end()) {
      p.scalers[static_cast<std::size_t>(id)].created = made->second.created;
      p.scalers[static_cast<std::size_t>(id)].restored = made->second.restored;
      session.recorder.define(p.scalers[static_cast<std::size_t>(id)]);
    }
  }
  trace::Scaler& scaler = p.scalers[static_cast<std::size_t>(id)];
  const auto source = p.sources_by_site.find(site);
  // A write to its scale tells nothing of its class; the update does.
  const bool named = !scaler.implementation.empty() && (scaler.implementation != "aten" || implementation == "aten");
  if (!named || (!scaler.source.known() && source != p.sources_by_site.end())) {
    if (!named) scaler.implementation = implementation;
    if (source != p.sources_by_site.end()) scaler.source = source->second;
    session.recorder.define(scaler);
  }
  p.scaler_by_scale_tensor[scale_tensor] = id;
  session.scale_tensors.put(scale_tensor, id, 1);
  update.scaler = id;
  // A program that sets the scale beside its update, before or after it, has not begun another step.
  const bool worked = p.ledger.contains(EventKind::backward) || p.ledger.contains(EventKind::unscale) ||
                      p.ledger.contains(EventKind::optimizer_step) || p.ledger.contains(EventKind::optimizer_skip);
  const bool beside = !p.explicit_steps && !worked && (update.assigned || p.ended_by_assignment);
  update.step = std::max<std::int64_t>(p.ledger.step() - (beside ? 1 : 0), 0);
  // On a device its numbers are on their way, see look_after_update.
  const bool here = !std::isnan(update.scale_after);
  if (here) {
    set_scale(p, static_cast<double>(update.scale_after));
    set_scale_of(p, id, static_cast<double>(update.scale_after));
    session.recorder.scaler_update(*thread.lane, update);
  }
  // An update that sets the scale comes beside the one that ends the step.
  if (const float absmax = update.assigned || !here ? 0.0F : backward_range.take(); absmax > 0) {
    session.recorder.series(*thread.lane, record::backward_absmax, id, update.step,
                            static_cast<double>(absmax) / static_cast<double>(update.scale_before));
  }
  p.scaler_in_use = true;
  p.ended_by_assignment = update.assigned;
  if (beside) return id;
  // The optimizers whose gradients were unscaled with a non-finite result and that did not step have been skipped.
  // By index: the list grows meanwhile.
  for (std::size_t i = 0, count = p.ledger.events().size(); i < count; ++i) {
    const trace::ProtocolEvent event = p.ledger.events()[i];
    if (event.kind != EventKind::unscale || !(event.flags & flag::found_inf)) continue;
    if (p.ledger.contains(EventKind::optimizer_step, event.object) ||
        p.ledger.contains(EventKind::optimizer_skip, event.object)) {
      continue;
    }
    add_event(session, thread, {.kind = EventKind::optimizer_skip, .object = event.object, .site = event.site});
  }
  trace::ProtocolEvent event{.kind = EventKind::scaler_update, .object = id, .site = site};
  if (update.found_inf > 0 || (!here && p.ledger.contains(EventKind::optimizer_skip))) event.flags |= flag::found_inf;
  add_event(session, thread, event);
  if (!p.explicit_steps) end_step(session, thread);
  return id;
}

void scale_has_arrived(Session& session, double scale) {
  const std::lock_guard lock(session.protocol.mutex);
  set_scale(session.protocol, scale);
}

void found_inf_read(Session& session) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  p.ledger.amend(EventKind::unscale, flag::found_inf, 0);
  mark_bad(session);
}

void gradients_touched(Session& session, ThreadState& thread, std::int64_t site, std::int64_t optimizer, bool written,
                       double factor) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  trace::ProtocolEvent event{
      .kind = written ? EventKind::gradient_write : EventKind::gradient_read, .object = optimizer, .site = site};
  // Scaled: the latest backward pass was of a scaled loss and nothing has unscaled since.
  for (const trace::ProtocolEvent& earlier : p.ledger.events()) {
    if (earlier.kind == EventKind::backward && (earlier.flags & flag::scaled)) event.flags |= flag::scaled;
    const bool concerns = optimizer < 0 || earlier.object < 0 || earlier.object == optimizer;
    if (earlier.kind == EventKind::unscale && concerns) event.flags &= ~flag::scaled;
  }
  if (undoes(p, factor)) event.flags |= flag::by_inverse_scale;
  add_event(session, thread, event);
}

void loss_read(Session& session, ThreadState& thread, std::int64_t site, bool to_number, double factor) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  trace::ProtocolEvent event{.kind = EventKind::loss_read, .site = site};
  if (to_number) event.flags |= flag::to_number;
  if (undoes(p, factor)) event.flags |= flag::by_inverse_scale;
  add_event(session, thread, event);
}

void gradients_cleared(Session& session, ThreadState& thread, std::int64_t site, std::int64_t optimizer) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  add_event(session, thread, {.kind = EventKind::gradient_clear, .object = optimizer, .site = site});
}

void optimizer_stepped(Session& session, ThreadState& thread, std::int64_t optimizer, std::int64_t site,
                       bool through_scaler, bool fused, bool fused_found_inf, double learning_rate) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  end_step_if_repeated(session, thread, optimizer);
  p.optimizer_seen = true;
  complete_optimizer(session, optimizer, "", fused, learning_rate, site);
  if (std::isfinite(learning_rate)) {
    session.recorder.series(*thread.lane, record::Series::learning_rate, optimizer, p.ledger.step(), learning_rate);
  }
  trace::ProtocolEvent event{.kind = EventKind::optimizer_step, .object = optimizer, .site = site};
  if (fused_found_inf) {
    // A fused optimizer's step always runs; with found_inf set its kernel leaves everything as it was.
    event.kind = EventKind::optimizer_skip;
    mark_bad(session);
  }
  if (fused) event.flags |= flag::fused;
  if (through_scaler) event.flags |= flag::through_scaler;
  if (!fused_found_inf && thread.step_applied_nonfinite) event.flags |= flag::nonfinite_gradients;
  thread.step_applied_nonfinite = false;
  if (!p.scaler_in_use && !p.explicit_steps && p.ledger.follows_ended_step(optimizer)) {
    // Steps end with the last of several optimizers, which is known only now.
    add_event(session, thread, event);
    if (!p.primary_settled) p.primary_optimizer = optimizer;
    return;
  }
  add_event(session, thread, event);
  if (p.primary_optimizer < 0) p.primary_optimizer = optimizer;
  if (!p.explicit_steps && !p.scaler_in_use && optimizer == p.primary_optimizer) end_step(session, thread);
}

namespace {

bool schedule_place_known(Session& session, std::uintptr_t object) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const auto known = p.schedule_by_object.find(object);
  return known != p.schedule_by_object.end() && p.schedules[static_cast<std::size_t>(known->second)].source.known();
}

}  // namespace

void schedule_stepped(Session& session, ThreadState& thread, std::uintptr_t object, const std::string& class_name,
                      std::uintptr_t optimizer_object, bool from_constructor) {
  Protocol& p = session.protocol;
  PythonPlace place;
  if (!from_constructor && python_connected() && !schedule_place_known(session, object)) place = python_place();
  const std::lock_guard lock(p.mutex);
  auto known = p.schedule_by_object.find(object);
  if (known != p.schedule_by_object.end() && !place.source.file.empty()) {
    trace::Schedule& schedule = p.schedules[static_cast<std::size_t>(known->second)];
    if (!schedule.source.known()) {
      schedule.source = place.source;
      session.recorder.define(schedule);
    }
  }
  if (known == p.schedule_by_object.end()) {
    trace::Schedule schedule;
    if (!from_constructor) schedule.source = place.source;
    schedule.id = static_cast<std::int64_t>(p.schedules.size());
    schedule.name = class_name;
    const auto optimizer = p.optimizer_by_object.find(optimizer_object);
    if (optimizer != p.optimizer_by_object.end()) schedule.optimizer = optimizer->second;
    p.schedules.push_back(schedule);
    session.recorder.define(schedule);
    known = p.schedule_by_object.emplace(object, schedule.id).first;
  }
  trace::ProtocolEvent event{.kind = EventKind::schedule_step, .object = known->second};
  if (from_constructor) event.flags |= flag::first_use;
  add_event(session, thread, event);
}

void scale_read(Session& session, std::uintptr_t scaler, bool as_factor, bool next_iteration) {
  ThreadState* thread = thread_state(session);
  if (!thread) return;
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const auto known = p.scaler_by_object.find(scaler);
  add_event(session, *thread,
            {.kind = EventKind::scale_read,
             .object = known == p.scaler_by_object.end() ? trace::none : known->second,
             .flags = (as_factor ? flag::by_inverse_scale : 0U) | (next_iteration ? flag::next_iteration : 0U)});
}

void scaler_made(Session& session, std::uintptr_t scaler) {
  Protocol& p = session.protocol;
  PythonPlace place;
  if (python_connected()) place = python_place();
  const std::lock_guard lock(p.mutex);
  p.scalers_made[scaler] = {place.source, false};
  session.objects_made.fetch_add(1, std::memory_order_relaxed);
  // An object of this identity was there before and is gone, and so is its scale.
  const auto gone = p.scaler_by_object.find(scaler);
  if (gone == p.scaler_by_object.end()) return;
  const std::int64_t id = gone->second;
  std::erase_if(p.scaler_by_scale_tensor, [&](const auto& entry) {
    if (entry.second != id) return false;
    session.scale_tensors.put(entry.first, trace::none, 1);
    return true;
  });
  p.scaler_by_object.erase(gone);
}

void scaler_restored(Session& session, std::uintptr_t scaler) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  p.scalers_made[scaler].restored = true;
  const auto known = p.scaler_by_object.find(scaler);
  if (known == p.scaler_by_object.end()) return;
  p.scalers[static_cast<std::size_t>(known->second)].restored = true;
  session.recorder.define(p.scalers[static_cast<std::size_t>(known->second)]);
}

void optimizer_restored(Session& session, std::uintptr_t optimizer) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  // One that has stepped before goes back to an earlier state of the same run; its scaler need not.
  if (optimizer != 0 && !p.optimizer_by_object.contains(optimizer)) p.optimizers_restored.insert(optimizer);
}

void scaler_refused(Session& session, ThreadState& thread, std::int64_t optimizer, std::int64_t site,
                    std::uint32_t reason) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  p.scaler_in_use = true;
  add_event(session, thread, {.kind = EventKind::refusal, .object = optimizer, .site = site, .flags = reason});
}

void parameters_written(Session& session, ThreadState& thread, std::int64_t site) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  // Initialisation before the first backward pass is no update.
  if (p.ledger.step() == 0 && !p.ledger.contains(EventKind::backward)) return;
  if (p.ledger.contains(EventKind::backward) && !p.optimizer_seen) {
    p.parameters_written = true;
    p.parameters_written_hint.store(true, std::memory_order_relaxed);
  }
  add_event(session, thread, {.kind = EventKind::parameter_write, .site = site});
}

void forward_continues(Session& session, ThreadState& thread) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  if (p.parameters_written && !p.optimizer_seen && !p.explicit_steps) end_step(session, thread);
}

void mark_step(Session& session, ThreadState& thread) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  p.explicit_steps = true;
  end_step(session, thread);
}

void loss_seen(Session& session, ThreadState& thread, double loss) {
  thread.pending_loss = loss;
  thread.has_pending_loss = true;
  if (!std::isfinite(loss)) step_is_bad(session);
}

void step_is_bad(Session& session) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  mark_bad(session);
}

std::int64_t current_micro_batch(Session& session) {
  const std::lock_guard lock(session.protocol.mutex);
  return session.protocol.micro_batch;
}

void finish_ledger(Session& session, ThreadState* thread) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  for (record::StepLedger::Closed& step : p.ledger.finish())
    write_closed(session, thread, step);
}

}  // namespace ampscope::observe
