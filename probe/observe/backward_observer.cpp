#include "probe/observe/backward_observer.h"

#include <cmath>

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "probe/observe/device_looks.h"
#include "probe/observe/nonfinite.h"
#include "probe/observe/protocol_events.h"
#include "probe/observe/site_resolver.h"
#include "probe/observe/tensor_access.h"
#include "probe/observe/ticks.h"
#include "probe/stats/kernels.h"

namespace ampscope::observe {
namespace {

constexpr const char* accumulate_name = "torch::autograd::AccumulateGrad";
constexpr const char* root_name = "torch::autograd::GraphRoot";

bool is_nonfinite(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  stats::TensorView view;
  return readable(impl) && view_of(impl, view) && stats::check_nonfinite(view).nonfinite;
}

/// Whether a compiler follows the program here: it runs backward formulas on tensors without values, in whatever state
/// autocast has where the compiled function is called for the first time.
bool is_traced() {
  using Modes = c10::impl::TorchDispatchModeTLS;
  using Key = c10::impl::TorchDispatchModeKey;
  return Modes::any_modes_set() && (Modes::get_mode(Key::PROXY).has_value() || Modes::get_mode(Key::FAKE).has_value());
}

void start_accumulate(Session& session, ThreadState& thread, Frame& frame, const at::RecordFunction& function) {
  thread.backward_accumulated = true;
  const auto node = torch::autograd::get_current_node();
  auto* accumulate = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get());
  if (!accumulate || !accumulate->variable.defined()) return;
  const at::Tensor& variable = accumulate->variable;
  frame.variable = variable.unsafeGetTensorImpl();
  const std::int64_t parameter = parameter_of(session, *frame.variable);
  frame.optimizer = parameter;  // Until the end: the parameter whose gradient address is noted then.
  const at::Tensor& before = variable.grad();
  frame.adds_gradient = before.defined();
  if (frame.adds_gradient) thread.backward_flags |= trace::event_flag::added;
  if (!session.looks_at_gradients()) return;
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor() || !inputs[0].toTensor().defined()) return;
  const at::Tensor& gradient = inputs[0].toTensor();
  // What stands in .grad was fine unless the running step or the one before went wrong.
  const bool doubtful = session.bad_step.load(std::memory_order_relaxed) + 1 >= session.step.load() &&
                        session.bad_steps.load(std::memory_order_relaxed) > 0;
  if (frame.adds_gradient && doubtful && is_nonfinite(before)) {
    thread.backward_flags |= trace::event_flag::stale_nonfinite;
  }
  if (is_nonfinite(gradient)) {
    thread.backward_flags |= trace::event_flag::fresh_nonfinite;
    nonfinite_gradient(session, thread, parameter, gradient);
  }
}

}  // namespace

void start_node(Session& session, ThreadState& thread, Frame& frame, const at::RecordFunction& function) {
  if (is_traced()) {
    frame.kind = FrameKind::ignored;
    return;
  }
  frame.kind = FrameKind::backward_node;
  frame.phase = trace::Phase::backward;
  frame.in_engine = true;
  frame.node_grad_mode = c10::GradMode::is_enabled();
  ++thread.engine_depth;
  for (const auto device : {c10::DeviceType::CPU, c10::DeviceType::CUDA}) {
    if (at::autocast::is_autocast_enabled(device)) {
      // The engine restores the state of the thread that called backward around every node, so this is the caller's.
      frame.autocast = true;
      frame.autocast_on_cuda = device == c10::DeviceType::CUDA;
      frame.autocast_dtype = dtype_of(at::autocast::get_autocast_dtype(device));
      break;
    }
  }
  const std::int64_t forward =
      function.seqNr() >= 0 ? session.sequences.find(function.forwardThreadId(), function.seqNr()) : trace::none;
  const bool is_root = frame.op->name == root_name;
  if (!thread.in_backward) {
    thread.in_backward = true;
    thread.backward_scaled = false;
    thread.backward_accumulated = false;
    thread.backward_flags = thread.root_gradient_made ? 0U : trace::event_flag::given_gradient;
    if (thread.optimizer_ranges > 0) thread.backward_flags |= trace::event_flag::inside_step;
    if (thread.divisor_changed) thread.backward_flags |= trace::event_flag::other_divisor;
    thread.divisor_changed = false;
    thread.root_gradient_made = false;
    thread.backward_added = 0;
    thread.backward_optimizers = 0;
    thread.backward_dtype = trace::DType::unknown;
    thread.backward_root_pending = false;
    if (!is_root) {
      backward_begins(session, thread, forward, frame.autocast, frame.autocast_dtype, frame.node_grad_mode);
    } else {
      thread.backward_root_pending = true;
    }
  } else if (thread.backward_root_pending && !is_root) {
    thread.backward_root_pending = false;
    backward_begins(session, thread, forward, frame.autocast, frame.autocast_dtype, frame.node_grad_mode);
  }
  if (is_root) return;
  if (frame.op->name == accumulate_name) start_accumulate(session, thread, frame, function);
  frame.site = resolve_node(session, thread, frame, forward);
  thread.last_node = frame.site;
  if (forward >= 0) {
    if (const SiteState* site = site_by_id(session, forward)) {
      for (const SiteState* s = site; s && !thread.backward_scaled; s = s->parent) {
        thread.backward_scaled = s->scales_loss;
      }
      if (trace::is_half(site->compute_dtype)) thread.backward_dtype = site->compute_dtype;
    }
  }
  // An autograd.Function of the user: Python runs inside, so its lines are worth knowing.
  frame.python_inside = frame.op->name.find("Backward") == std::string::npos ||
                        (frame.op->name.find("::") == std::string::npos && frame.op->name.back() == 'd');
}

void end_node(Session& session, ThreadState& thread, Frame& frame) {
  if (frame.variable) {
    // .grad may have been made or replaced just now; what later reads or changes it is recognised by its address.
    const auto node = torch::autograd::get_current_node();
    auto* accumulate = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get());
    if (accumulate && accumulate->variable.defined()) {
      const at::Tensor& gradient = accumulate->variable.grad();
      if (gradient.defined()) {
        note_gradient(session, frame.optimizer, accumulate->variable);
        session.gradients.put(address_of(*gradient.unsafeGetTensorImpl()), frame.optimizer,
                              static_cast<std::uint32_t>(session.step.load(std::memory_order_relaxed)) + 1);
      }
    }
    const std::int64_t optimizer = owner_of(session, frame.optimizer);
    if (optimizer >= 0 && optimizer < 64) {
      thread.backward_optimizers |= std::uint64_t{1} << optimizer;
      if (frame.adds_gradient) thread.backward_added |= std::uint64_t{1} << optimizer;
    }
  }
  if (!frame.site) return;
  frame.site->counters->count_call(session.step.load(std::memory_order_relaxed), 0, 0);
  if (frame.start_ticks) {
    frame.site->counters->timed_calls.add(1);
    frame.site->counters->timed_ns.add(ticks_to_ns(ticks() - frame.start_ticks));
  }
  if (frame.site->definition) publish(session, *frame.site, {});
}

void end_backward(Session& session, ThreadState& thread) {
  thread.in_backward = false;
  thread.last_node = nullptr;
  if (session.recorder.options().world_size > 1) gradients_were_exchanged(session);
  if (!thread.backward_root_pending) backward_ends(session, thread);
  thread.backward_root_pending = false;
}

void note_loss(Session& session, ThreadState& thread, const c10::IValue& root) {
  if (!root.isTensor() || !root.toTensor().defined()) return;
  const c10::TensorImpl& impl = *root.toTensor().unsafeGetTensorImpl();
  if (impl.has_symbolic_sizes_strides() || impl.numel() != 1 || !impl.requires_grad()) return;
  if (on_device(session, impl)) {
    const ProducerTable::Entry made = session.producers.find(address_of(impl));
    const SiteState* const maker = made.known ? site_by_id(session, made.site) : nullptr;
    look_at_loss(session, impl, maker && maker->scales_loss);
    return;
  }
  if (!readable(impl)) return;
  const double loss = scalar_of(impl);
  loss_seen(session, thread, loss);
  if (!std::isfinite(loss)) settle_events(session, thread);
}

}  // namespace ampscope::observe
