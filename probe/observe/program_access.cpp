#include "probe/observe/program_access.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <c10/core/GradMode.h>

#include "probe/observe/protocol_events.h"
#include "probe/observe/scaler_observer.h"
#include "probe/observe/tensor_access.h"

namespace ampscope::observe {
namespace {

/// What an op multiplies its first argument by; NaN when it does something else, or by no single number.
double factor_of(const OpInfo& op, c10::ArrayRef<const c10::IValue> inputs) {
  const bool multiplies = op.name == "aten::mul" || op.name == "aten::mul_" || op.name == "aten::_foreach_mul" ||
                          op.name == "aten::_foreach_mul_";
  const bool divides = op.name == "aten::div" || op.name == "aten::div_" || op.name == "aten::_foreach_div" ||
                       op.name == "aten::_foreach_div_";
  double value = std::numeric_limits<double>::quiet_NaN();
  if ((!multiplies && !divides) || inputs.size() < 2) return value;
  if (const at::Tensor* tensor = tensor_of(inputs[1])) {
    const c10::TensorImpl& impl = *tensor->unsafeGetTensorImpl();
    // A number of the program's comes as a tensor that stands for it.
    if ((impl.is_wrapped_number() || readable(impl)) && impl.numel() == 1) value = scalar_of(impl);
  } else if (inputs[1].isDouble()) {
    value = inputs[1].toDouble();
  } else if (inputs[1].isInt()) {
    value = static_cast<double>(inputs[1].toInt());
  }
  return divides ? 1 / value : value;
}

}  // namespace

void note_loss_read(Session& session, ThreadState& thread, const Frame& frame,
                    c10::ArrayRef<const c10::IValue> inputs) {
  if (frame.op->values == Values::views || inputs.empty()) return;
  const at::Tensor* tensor = first_tensor(inputs[0]);
  if (!tensor) return;
  const c10::TensorImpl& impl = *tensor->unsafeGetTensorImpl();
  if (impl.numel() != 1 || !frame.site) return;
  const ProducerTable::Entry made = session.producers.find(address_of(impl));
  if (!made.known || made.thread != thread.slot) return;
  const SiteState* const maker = site_by_id(session, made.site);
  if (!maker || !maker->scales_loss) return;
  const bool to_number = frame.op->meaning == Meaning::host_read;
  const double factor = factor_of(*frame.op, inputs);
  // What takes part in autograd makes the loss that backward starts from, unless it takes the scale out again.
  const bool differentiable = impl.requires_grad() && c10::GradMode::is_enabled();
  if (to_number || !differentiable || std::isfinite(factor)) {
    loss_read(session, thread, frame.site->id, to_number, factor);
  }
}

void note_divisor(ThreadState& thread, const Frame& frame, c10::ArrayRef<const c10::IValue> inputs) {
  if (!frame.site || inputs.size() < 2 || thread.in_backward || !c10::GradMode::is_enabled()) return;
  const at::Tensor* const loss = tensor_of(inputs[0]);
  if (!loss || !loss->requires_grad()) return;
  const c10::TensorImpl& impl = *loss->unsafeGetTensorImpl();
  if (impl.has_symbolic_sizes_strides() || impl.numel() != 1) return;
  const double factor = factor_of(*frame.op, inputs);
  if (!std::isfinite(factor) || factor == 0) return;
  const double divisor = 1 / factor;
  if (frame.site->divisor != 0 && frame.site->divisor != divisor) thread.divisor_changed = true;
  frame.site->divisor = divisor;
}

namespace {

/// A list may hold gradients of several optimizers (clip_grad_norm_ of a whole model). False where it holds none.
bool note_list_access(Session& session, ThreadState& thread, const Frame& frame,
                      c10::ArrayRef<const c10::IValue> inputs) {
  constexpr std::size_t most_owners = 8;
  std::array<std::int64_t, most_owners> owners{};
  std::size_t count = 0;
  const std::size_t enough = std::clamp<std::size_t>(optimizer_count(session), 1, most_owners);
  for (const c10::IValue& element : inputs[0].toListRef()) {
    if (!element.isTensor() || !element.toTensor().defined()) continue;
    const std::int64_t parameter = gradient_at(session, address_of(*element.toTensor().unsafeGetTensorImpl()));
    if (parameter < 0) continue;
    const std::int64_t owner = owner_of(session, parameter);
    if (std::find(owners.begin(), owners.begin() + count, owner) != owners.begin() + count) continue;
    owners[count++] = owner;
    if (count == enough) break;
  }
  const bool clears = frame.op->mutates_first && frame.op->values == Values::constant;
  for (std::size_t i = 0; i < count; ++i) {
    if (clears) {
      gradients_cleared(session, thread, frame.site->id, owners[i]);
    } else {
      gradients_touched(session, thread, frame.site->id, owners[i], frame.op->mutates_first,
                        factor_of(*frame.op, inputs));
    }
  }
  return count > 0;
}

}  // namespace

void note_gradient_access(Session& session, ThreadState& thread, const Frame& frame,
                          c10::ArrayRef<const c10::IValue> inputs) {
  if (!frame.site || frame.phase == trace::Phase::backward) return;
  if (frame.phase == trace::Phase::optimizer) {
    // zero_grad that fills with zeros tells by that whose gradients it clears.
    const bool clears = frame.op->mutates_first && frame.op->values == Values::constant && !inputs.empty();
    const at::Tensor* cleared = clears && thread.cleared_optimizer < 0 ? first_tensor(inputs[0]) : nullptr;
    if (cleared) {
      thread.cleared_optimizer = owner_of(session, gradient_at(session, address_of(*cleared->unsafeGetTensorImpl())));
    }
    return;
  }
  if (frame.op->values == Values::views || frame.op->meaning == Meaning::unscale) return;
  if (thread.depth > 1 && thread.frames[thread.depth - 2].kind == FrameKind::op &&
      !thread.frames[thread.depth - 2].python_inside) {
    return;  // Part of an op that has been noted.
  }
  if (!inputs.empty() && inputs[0].isTensorList() && note_list_access(session, thread, frame, inputs)) return;
  for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), 4); ++i) {
    const at::Tensor* tensor = first_tensor(inputs[i]);
    const std::int64_t parameter =
        tensor ? gradient_at(session, address_of(*tensor->unsafeGetTensorImpl())) : trace::none;
    if (parameter < 0) continue;
    const std::int64_t optimizer = owner_of(session, parameter);
    const bool writes = frame.op->mutates_first && i == 0;
    if (writes && frame.op->values == Values::constant) {
      gradients_cleared(session, thread, frame.site->id, optimizer);  // zero_, fill_
    } else {
      const double factor = i == 0 ? factor_of(*frame.op, inputs) : std::numeric_limits<double>::quiet_NaN();
      gradients_touched(session, thread, frame.site->id, optimizer, writes, factor);
    }
    return;
  }
}

void note_parameter_write(Session& session, ThreadState& thread, const Frame& frame,
                          c10::ArrayRef<const c10::IValue> inputs) {
  if (!frame.site || !frame.op->mutates_first || inputs.empty()) return;
  if (frame.phase == trace::Phase::backward) return;
  const at::Tensor* target = first_tensor(inputs[0]);
  if (!target) return;
  // Where gradients are recorded a parameter itself cannot be written in place; what shares its memory (.data) can.
  if (c10::GradMode::is_enabled() && target->requires_grad()) return;
  std::int64_t parameter = parameter_at(session, address_of(*target->unsafeGetTensorImpl()));
  // With torch.autograd.grad alone nothing but the update itself tells which tensors are trained. Where there is an
  // optimizer it is an input that is changed so, as attacks do.
  if (parameter < 0 && session.protocol.only_takes_gradients.load(std::memory_order_relaxed) &&
      !session.optimizer_made.load(std::memory_order_relaxed) && target->requires_grad() && target->is_leaf()) {
    parameter = learn_parameter(session, *target);
  }
  if (parameter < 0) return;
  if (frame.phase == trace::Phase::optimizer) {
    optimizer_touched(session, thread, parameter);
  } else {
    // An optimizer without a range (LibTorch's own, or by hand).
    look_at_fresh_gradients(session, thread, trace::none);
    parameters_written(session, thread, frame.site->id);
  }
}

}  // namespace ampscope::observe
