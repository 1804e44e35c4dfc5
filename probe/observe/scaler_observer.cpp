#include "probe/observe/scaler_observer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "probe/observe/announcements.h"
#include "probe/observe/backward_observer.h"
#include "probe/observe/device_looks.h"
#include "probe/observe/nonfinite.h"
#include "probe/observe/protocol_events.h"
#include "probe/observe/python_frames.h"
#include "probe/observe/site_resolver.h"
#include "probe/observe/tensor_access.h"
#include "probe/observe/write_watch.h"
#include "probe/stats/kernels.h"

namespace ampscope::observe {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

const c10::TensorImpl* tensor_impl(Inputs inputs, std::size_t index) {
  if (index >= inputs.size() || !inputs[index].isTensor() || !inputs[index].toTensor().defined()) return nullptr;
  return inputs[index].toTensor().unsafeGetTensorImpl();
}

float float_of(const c10::TensorImpl* tensor) {
  return tensor ? static_cast<float>(scalar_of(*tensor)) : std::numeric_limits<float>::quiet_NaN();
}

std::int32_t int_of(const c10::TensorImpl* tensor) {
  const double value = tensor ? scalar_of(*tensor) : 0;
  return std::isfinite(value) ? static_cast<std::int32_t>(value) : 0;
}

double number_of(Inputs inputs, std::size_t index) {
  if (index >= inputs.size()) return 0;
  if (inputs[index].isDouble()) return inputs[index].toDouble();
  if (inputs[index].isInt()) return static_cast<double>(inputs[index].toInt());
  return 0;
}

/// log2 of a loss scale; false where the scale is no power of two.
bool binary_exponent(double scale, int& exponent) {
  const double mantissa = std::frexp(scale, &exponent);
  --exponent;
  return mantissa == 0.5;
}

/// Statistics of one gradient as the optimizer is to see it. `scale`: the loss scale; `divide`: the gradient still
/// carries it.
void record_gradient(Session& session, ThreadState& thread, std::int64_t parameter, const at::Tensor& gradient,
                     double scale, bool divide) {
  const c10::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
  if (on_device(session, impl)) {
    add_gradient_look(session, impl, parameter, thread.backward_dtype, scale, divide);
    return;
  }
  stats::TensorView view;
  if (!readable(impl) || !view_of(impl, view)) return;
  if (!session.gradients_drawn.load(std::memory_order_relaxed)) {
    if (stats::check_nonfinite(view).nonfinite) thread.step_applied_nonfinite = true;
    return;
  }
  thread.scratch.reset();
  stats::accumulate(view, thread.scratch);
  if (thread.scratch.nonfinite() > 0) thread.step_applied_nonfinite = true;
  int exponent = 0;
  // A histogram of binary exponents is divided exactly by a power of two alone; anything else is not recorded.
  if (divide &&
      !(binary_exponent(scale, exponent) &&
        stats::divide_by_power_of_two(thread.scratch, exponent, trace::float_limits(dtype_of(impl)).smallest_normal))) {
    return;
  }
  record::GradientSample sample;
  sample.step = session.step.load(std::memory_order_relaxed);
  sample.parameter = parameter;
  sample.scale = scale;
  sample.weight = session.gradient_weight.load(std::memory_order_relaxed);
  sample.backward_dtype = thread.backward_dtype;
  session.recorder.gradient(*thread.lane, sample, thread.scratch);
  add_gradient_norm(
      session, thread.scratch.nonfinite() > 0 ? std::numeric_limits<double>::infinity() : thread.scratch.sum_squares);
}

/// loss * scaler.get_scale(): the scale as a number of the program's.
bool is_current_scale(Session& session, const c10::IValue& value) {
  if (!session.protocol.scales.load(std::memory_order_relaxed)) return false;
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const c10::TensorImpl& impl = *value.toTensor().unsafeGetTensorImpl();
  if (impl.has_symbolic_sizes_strides() || impl.numel() != 1 || !impl.is_wrapped_number()) return false;
  const double scale = current_scale(session);
  return scale != 1 && scalar_of(impl) == scale;
}

/// A step of which only the optimizer is seen. `check`: nobody else has made sure that the gradients are finite.
void look_at_known_gradients(Session& session, ThreadState& thread, std::int64_t optimizer, double scale, bool divide,
                             bool check) {
  if (!session.looks_at_gradients()) return;
  const bool values = session.gradients_drawn.load(std::memory_order_relaxed);
  if (!values && !check) return;
  known_gradients(session, optimizer, thread.gradients);
  for (const auto& [parameter, gradient] : thread.gradients) {
    if (values) record_gradient(session, thread, parameter, gradient, scale, divide);
    const c10::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
    stats::TensorView view;
    if (!check || !readable(impl) || !view_of(impl, view) || !stats::check_nonfinite(view).nonfinite) continue;
    thread.step_applied_nonfinite = true;
    nonfinite_gradient(session, thread, parameter, gradient);
  }
  thread.gradients.clear();  // They are the program's; a reference kept would be a use of theirs.
}

/// With a budget, steps whose operators are not announced are possible only if the scaler's calls announce themselves.
void note_announcement(Session& session, const ThreadState& thread) {
  if (thread.scaler_region == 0) session.unannounced_scaler.store(true, std::memory_order_relaxed);
}

}  // namespace

namespace {

/// Which optimizer the running unscaling is for. Python's frames are asked once a parameter; what they said holds until
/// the program makes another scaler or optimizer.
std::int64_t optimizer_of_unscale(Session& session, std::int64_t first_parameter) {
  Protocol& p = session.protocol;
  const std::uint64_t made = session.objects_made.load(std::memory_order_relaxed);
  if (first_parameter >= 0) {
    const std::lock_guard lock(p.mutex);
    const std::int64_t owner = p.parameters[static_cast<std::size_t>(first_parameter)].optimizer;
    const auto told = p.owners_told.find(first_parameter);
    if (owner >= 0 && told != p.owners_told.end() && told->second == made) return owner;
  }
  const ScalerCall call = python_connected() ? python_scaler_call() : ScalerCall{};
  const std::int64_t optimizer = optimizer_owning(session, first_parameter, call.optimizer, call.optimizer_class);
  if (first_parameter >= 0 && call.optimizer != 0) {
    const std::lock_guard lock(p.mutex);
    p.owners_told[first_parameter] = made;
  }
  return optimizer;
}

/// Which scaler is being updated, in the same way. The reference stays valid; only this thread's update can change it.
const Protocol::KnownScaler& scaler_of_update(Session& session, const ThreadState& thread, const void* scale_tensor) {
  Protocol& p = session.protocol;
  const std::uint64_t made = session.objects_made.load(std::memory_order_relaxed);
  {
    const std::lock_guard lock(p.mutex);
    const auto known = p.scaler_calls.find(scale_tensor);
    if (known != p.scaler_calls.end() && known->second.made == made && known->second.object != 0) return known->second;
  }
  const ScalerCall call = python_connected() ? python_scaler_call() : ScalerCall{};
  const std::lock_guard lock(p.mutex);
  Protocol::KnownScaler& known = p.scaler_calls[scale_tensor];
  known.object = call.scaler;
  known.made = made;
  known.implementation = !call.scaler_class.empty() ? call.scaler_class
                         : thread.scaler_range      ? "ampscope::executor::GradScaler"
                                                    : "aten";
  return known;
}

}  // namespace

void scaler_region(Session& session, ThreadState& thread, bool begins) {
  if (!session.budget) return;
  thread.scaler_region = std::max(0, thread.scaler_region + (begins ? 1 : -1));
  if (thread.scaler_region > (begins ? 1 : 0)) return;
  if (begins) {
    thread.region_optimizer = trace::none;
    thread.region_found_inf = false;
    announce(Announced::everything);
    return;
  }
  const bool seen = session.sees_operators();
  announce(seen ? Announced::everything : Announced::ranges);
  if (seen || thread.region_optimizer < 0) return;
  // The scaler has checked the gradients of this step; which of them were bad is worth a look, and so are their values
  // in a step that was drawn for it.
  look_at_known_gradients(session, thread, thread.region_optimizer, thread.region_scale, thread.region_divides,
                          thread.region_found_inf);
  thread.step_applied_nonfinite = false;
}

void start_unscale(Session& session, ThreadState& thread, Frame& frame, Inputs inputs) {
  if (session.budget) note_announcement(session, thread);
  frame.gradient_list = inputs.empty() ? c10::IValue() : inputs[0];
  frame.found_inf_tensor = tensor_impl(inputs, 1);
  const float inverse = float_of(tensor_impl(inputs, 2));
  // The op multiplies by the reciprocal; the scale itself is its inverse, exactly so for powers of two.
  frame.scale = inverse > 0 ? 1.0 / static_cast<double>(inverse) : std::numeric_limits<double>::infinity();
  // On a device it is on its way; what gradients are found to be is put together with it when both have arrived.
  const c10::TensorImpl* const factor = tensor_impl(inputs, 2);
  if (factor && on_device(session, *factor)) {
    frame.scale = std::numeric_limits<double>::quiet_NaN();
    send_gradient_looks(session, factor);
  }
  if (frame.found_inf_tensor && on_device(session, *frame.found_inf_tensor)) {
    session.found_inf_tensors.put(address_of(*frame.found_inf_tensor), 1, 1);
  }
}

void end_unscale(Session& session, ThreadState& thread, Frame& frame) {
  const c10::IValue list = std::move(frame.gradient_list);
  frame.gradient_list = c10::IValue();
  // A program's own scaler calls it for an optimizer without gradients as well.
  if (list.isTensorList() && list.toListRef().empty()) return;
  const float found = float_of(frame.found_inf_tensor);
  std::int64_t first_parameter = trace::none;
  bool replaced = false;
  if (list.isTensorList()) {
    for (const c10::IValue& entry : list.toListRef()) {
      if (!entry.isTensor() || !entry.toTensor().defined()) continue;
      if (!session.sees_operators()) break;  // Where gradients lie now has not been seen.
      const at::Tensor& gradient = entry.toTensor();
      const void* const address = address_of(*gradient.unsafeGetTensorImpl());
      const std::int64_t parameter = gradient_at(session, address);
      replaced |= !has_arrived_at(session, parameter, address);
      if (first_parameter < 0) first_parameter = parameter;
    }
  }
  const std::int64_t optimizer = optimizer_of_unscale(session, first_parameter);
  // Before a fused optimizer's step the op is called with 1, only to look for infinities: its kernel divides.
  const double pending = frame.scale == 1 ? pending_scale(session, optimizer) : 1;
  if (pending != 1) frame.scale = pending;
  thread.region_optimizer = optimizer;
  thread.region_found_inf |= found > 0;
  thread.region_scale = frame.scale;
  thread.region_divides = pending != 1;
  if (list.isTensorList() && session.sees_operators()) {
    for (const c10::IValue& entry : list.toListRef()) {
      if (!entry.isTensor() || !entry.toTensor().defined()) continue;
      const void* address = address_of(*entry.toTensor().unsafeGetTensorImpl());
      const std::int64_t parameter = session.gradients.find(address);
      if (session.looks_at_gradients() && parameter >= 0 && gradient_at(session, address) == parameter) {
        record_gradient(session, thread, parameter, entry.toTensor(), frame.scale, pending != 1);
      }
      assign_owner(session, parameter, optimizer);
      forget_fresh_gradient(session, parameter);
    }
    send_gradient_looks(session, nullptr);
  }
  thread.step_applied_nonfinite = false;  // The scaler looks after these.
  gradients_unscaled(session, thread, optimizer, frame.site ? frame.site->id : trace::none, frame.scale, found > 0,
                     replaced);
  if (found > 0) {
    settle_events(session, thread);
    write_recent_calls(session, thread);
  }
}

void start_update(Session& session, ThreadState& thread, Frame& frame, Inputs inputs) {
  if (session.budget) note_announcement(session, thread);
  frame.scale_tensor = tensor_impl(inputs, 0);
  frame.tracker_tensor = tensor_impl(inputs, 1);
  frame.update = {};
  frame.update.scale_before = float_of(frame.scale_tensor);
  frame.update.tracker_before = int_of(frame.tracker_tensor);
  frame.update.found_inf = float_of(tensor_impl(inputs, 2));
  frame.update.growth_factor = number_of(inputs, 3);
  frame.update.backoff_factor = number_of(inputs, 4);
  frame.update.growth_interval = static_cast<std::int32_t>(number_of(inputs, 5));
  if (frame.scale_tensor && on_device(session, *frame.scale_tensor)) {
    look_before_update(session, *frame.scale_tensor, frame.tracker_tensor, tensor_impl(inputs, 2));
  }
}

void end_update(Session& session, ThreadState& thread, Frame& frame) {
  frame.update.scale_after = float_of(frame.scale_tensor);
  frame.update.tracker_after = int_of(frame.tracker_tensor);
  const void* address = frame.scale_tensor ? address_of(*frame.scale_tensor) : nullptr;
  const Protocol::KnownScaler& scaler = scaler_of_update(session, thread, address);
  frame.update.step = session.step.load(std::memory_order_relaxed);
  frame.update.scaler = scale_updated(session, thread, frame.update, address, frame.site ? frame.site->id : trace::none,
                                      scaler.object, scaler.implementation);
  if (frame.scale_tensor && on_device(session, *frame.scale_tensor)) {
    look_after_update(session, *frame.scale_tensor, frame.tracker_tensor, frame.update);
  }
  settle_events(session, thread);
}

void note_number_read(Session& session, const Frame& frame, c10::ArrayRef<c10::IValue> outputs) {
  if (frame.input_count == 0 || outputs.empty() || !outputs[0].isDouble()) return;
  // GradScaler.step asks with it whether to skip.
  if (outputs[0].toDouble() > 0 && session.found_inf_tensors.find(frame.inputs[0].address) >= 0)
    found_inf_read(session);
}

void note_loss_scaling(Session& session, ThreadState& thread, const Frame& frame, Inputs inputs) {
  if (!frame.site || inputs.size() < 2) return;
  if (!frame.site->scales_loss) {
    const bool announced = thread.scaler_range && thread.scaler_range->name == "GradScaler.scale";
    const bool by_address = is_scale_tensor(session, inputs[0]) || is_scale_tensor(session, inputs[1]);
    if (!announced && !by_address && !is_current_scale(session, inputs[1])) return;
    // The product of the scale with something of the program's that takes part in autograd is a scaled loss.
    const c10::TensorImpl* a = tensor_impl(inputs, 0);
    const c10::TensorImpl* b = tensor_impl(inputs, 1);
    if (!(a && a->requires_grad()) && !(b && b->requires_grad())) return;
    frame.site->scales_loss = true;
    if (frame.site->api.empty() && frame.site->definition) frame.site->definition->api = "GradScaler.scale";
  }
  const c10::TensorImpl* factor = tensor_impl(inputs, 1);
  const auto may_be_scale = [](const c10::TensorImpl* t) {
    return t && !t->has_symbolic_sizes_strides() && t->numel() == 1 && !t->requires_grad();
  };
  if (!may_be_scale(factor)) factor = tensor_impl(inputs, 0);
  const bool is_factor = may_be_scale(factor);
  loss_scaled(session, thread, frame.site->id,
              is_factor && !factor->is_wrapped_number() ? address_of(*factor) : nullptr,
              is_factor ? scalar_of(*factor) : std::numeric_limits<double>::quiet_NaN());
}

void note_scale_assignment(Session& session, ThreadState& thread, const Frame& frame,
                           c10::ArrayRef<c10::IValue> outputs) {
  if (!frame.op->mutates_first || frame.op->meaning == Meaning::update_scale || outputs.empty()) return;
  // Inside another op it fills new memory, which may have been the scale of a scaler that is gone.
  if (thread.depth > 1 && thread.frames[thread.depth - 2].kind == FrameKind::op) return;
  const c10::IValue& value = outputs[0];
  if (!value.isTensor() || !value.toTensor().defined()) return;
  const c10::TensorImpl& impl = *value.toTensor().unsafeGetTensorImpl();
  if (!is_scale_tensor(session, value)) return;
  trace::ScalerUpdate update;
  update.assigned = true;
  update.scale_after = static_cast<float>(scalar_of(impl));
  update.scale_before = static_cast<float>(current_scale(session));
  scale_updated(session, thread, update, address_of(impl), frame.site ? frame.site->id : trace::none, 0, "aten");
}

void optimizer_range_begins(Session& session, ThreadState& thread) {
  static_cast<void>(session);
  ++thread.optimizer_ranges;
  thread.range_parameter = trace::none;
  thread.range_object = 0;
  thread.range_class.clear();
  thread.range_learning_rate = std::numeric_limits<double>::quiet_NaN();
  thread.range_through_scaler = false;
}

void optimizer_touched(Session& session, ThreadState& thread, std::int64_t parameter) {
  static_cast<void>(session);
  if (thread.range_parameter < 0) thread.range_parameter = parameter;
}

void look_at_fresh_gradients(Session& session, ThreadState& thread, std::int64_t optimizer) {
  // p.grad = p.grad / scale: what the quotient was for shows only now.
  if (const std::int64_t site = gradients_divided_at(session, optimizer);
      site >= 0 && gradients_replaced(session, optimizer)) {
    gradients_touched(session, thread, site, optimizer, true, 1 / current_scale(session));
  }
  if (!session.looks_at_gradients()) return;
  const double scale = pending_scale(session, optimizer);
  if (!session.sees_operators()) {
    if (!unscaled_in_this_step(session, optimizer)) {
      look_at_known_gradients(session, thread, optimizer, scale, scale != 1, true);
    }
    return;
  }
  take_fresh_gradients(session, optimizer, thread.gradients);
  for (const auto& [parameter, gradient] : thread.gradients)
    record_gradient(session, thread, parameter, gradient, scale, scale != 1);
  thread.gradients.clear();  // They are the program's; a reference kept would be a use of theirs.
  send_gradient_looks(session, nullptr);
}

void note_fused_kernel(ThreadState& thread, const Frame& frame, Inputs inputs) {
  const auto& names = frame.op->arguments;
  for (std::size_t i = 0; i < std::min(inputs.size(), names.size()); ++i) {
    if (names[i] != "found_inf") continue;
    const c10::TensorImpl* found = tensor_impl(inputs, i);
    if (!found) return;
    thread.range_fused = true;
    thread.range_fused_skip |= float_of(found) > 0;
  }
}

void optimizer_told(Session& session, ThreadState& thread, std::uintptr_t object, const std::string& class_name,
                    double learning_rate, bool through_scaler) {
  thread.range_object = object;
  thread.range_class = class_name;
  thread.range_learning_rate = learning_rate;
  thread.range_through_scaler = through_scaler;
  const std::int64_t optimizer = optimizer_of_object(session, object);
  // One that was copied or unpickled was made without our noticing.
  if (object && optimizer < 0) session.objects_made.fetch_add(1, std::memory_order_relaxed);
  look_at_fresh_gradients(session, thread, optimizer);
  if (learning_rate != 0) watch_parameters(session, thread, optimizer);
}

void optimizer_range_ends(Session& session, ThreadState& thread, const Frame& frame) {
  compare_parameters(session, thread, frame, thread.range_fused_skip);
  // An optimizer that leaves the work to others of its own (ZeroRedundancyOptimizer, SAM, a chain of several) has not
  // stepped beside them.
  const int depth = std::max(thread.optimizer_ranges, 1);
  const bool left_to_others = thread.stepped_at_range > depth;
  thread.optimizer_ranges = depth - 1;
  thread.stepped_at_range = depth > 1 ? std::max(thread.stepped_at_range, depth) : 0;
  if (left_to_others) {
    thread.range_fused = thread.range_fused_skip = false;
    thread.range_parameter = trace::none;
    return;
  }
  std::string class_name = thread.range_class;
  if (class_name.empty()) {
    // "Optimizer.step#Adam.step"
    const std::string& name = frame.op->name;
    const auto begin = name.find('#') + 1;
    class_name = name.substr(begin, name.find('.', begin) - begin);
  }
  bool through_scaler = thread.range_through_scaler;
  for (std::size_t i = 0; i + 1 < thread.depth; ++i) {
    through_scaler |= thread.frames[i].op && thread.frames[i].op->name == "GradScaler.step";
  }
  const std::int64_t optimizer = optimizer_owning(session, thread.range_parameter, thread.range_object, class_name);
  if (!session.sees_operators() && is_fused(session, optimizer)) {
    thread.range_fused = true;
    thread.range_fused_skip = thread.region_found_inf && thread.region_optimizer == optimizer;
  }
  optimizer_stepped(session, thread, optimizer, frame.site ? frame.site->id : trace::none, through_scaler,
                    thread.range_fused, thread.range_fused_skip, thread.range_learning_rate);
  thread.range_fused = thread.range_fused_skip = false;
  thread.range_parameter = trace::none;
}

namespace {

void refused(Session& session, ThreadState& thread, std::int64_t optimizer, std::uint32_t reason) {
  if (thread.in_backward && thread.engine_depth == 0) end_backward(session, thread);
  const char* const name = (reason & trace::event_flag::nothing_to_update) != 0 ? "GradScaler.update"
                           : (reason & (trace::event_flag::unscaled_twice | trace::event_flag::unscaled_late)) != 0
                               ? "GradScaler.unscale_"
                               : "GradScaler.step";
  Frame frame;
  frame.op = op_info(name, "");
  frame.kind = FrameKind::closed_range;
  frame.phase = trace::Phase::scaler;
  SiteState* const site = resolve_outer(session, thread, frame, frame.op->id, {});
  if (site && site->definition) publish(session, *site, {});
  scaler_refused(session, thread, optimizer, site ? site->id : trace::none, reason);
}

}  // namespace

void note_refusal(Session& session, ThreadState& thread, std::uintptr_t optimizer, const std::string& class_name,
                  std::uint32_t reason) {
  std::int64_t id = optimizer_of_object(session, optimizer);
  if (id < 0 && optimizer) id = optimizer_owning(session, trace::none, optimizer, class_name);
  refused(session, thread, id, reason);
}

bool note_scaler_range(Session& session, ThreadState& thread, const std::string& name,
                       c10::ArrayRef<const c10::IValue> inputs) {
  namespace flag = trace::event_flag;
  static constexpr std::array<std::pair<std::string_view, std::uint32_t>, 8> refusals = {{
      {"GradScaler.refused#closure", flag::needs_closure},
      {"GradScaler.refused#not_scaled", flag::never_scaled},
      {"GradScaler.refused#already_unscaled", flag::unscaled_twice},
      {"GradScaler.refused#unscale_after_step", flag::unscaled_late},
      {"GradScaler.refused#already_stepped", flag::stepped_twice},
      {"GradScaler.refused#fp16_gradients", flag::half_gradients},
      {"GradScaler.refused#no_gradients", flag::no_gradients},
      {"GradScaler.refused#nothing_checked", flag::nothing_to_update},
  }};
  if (name == "GradScaler.make_scale") {
    thread.scaler_made = true;
    return true;
  }
  if (name == "GradScaler.load_state_dict") {
    thread.scaler_restored = true;
    return true;
  }
  for (const auto& [range, reason] : refusals) {
    if (name != range) continue;
    const at::Tensor* const parameter = inputs.empty() ? nullptr : tensor_of(inputs[0]);
    const std::int64_t optimizer =
        parameter ? owner_of(session, parameter_at(session, address_of(*parameter->unsafeGetTensorImpl())))
                  : trace::none;
    refused(session, thread, optimizer, reason);
    return true;
  }
  return false;
}

std::string schedule_class(const std::string& range) {
  const auto begin = range.find('#') + 1;
  return range.substr(begin, range.find('.', begin) - begin);
}

}  // namespace ampscope::observe
