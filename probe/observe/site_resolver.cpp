#include "probe/observe/site_resolver.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <ATen/TracerMode.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include "probe/observe/protocol_events.h"
#include "probe/observe/python_frames.h"
#include "probe/observe/tensor_access.h"

namespace ampscope::observe {
namespace {

// A step in which frames are walked for every site does so no longer than this: it may be all of an evaluation.
constexpr std::uint32_t walked_calls = 20'000;
constexpr std::size_t max_list_entries = 4;

std::uint64_t combine(std::uint64_t a, std::uint64_t b) noexcept {
  return mix_address(a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2)));
}

trace::TensorType describe_input(Session& session, const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  trace::TensorType type = type_of(impl);
  const void* address = address_of(impl);
  type.parameter = parameter_at(session, address);
  const ProducerTable::Entry producer = session.producers.find(address);
  if (producer.known) type.producer = producer.site;
  return type;
}

void describe_inputs(Session& session, trace::Site& site, const OpInfo& op, c10::ArrayRef<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const c10::IValue& value = inputs[i];
    const std::string name = i < op.arguments.size() ? op.arguments[i] : "";
    const auto scalar = [&](double number) {
      site.scalars.push_back(number);
      site.scalar_names.push_back(name);
    };
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!tensor.defined()) continue;
      if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
        scalar(scalar_of(*tensor.unsafeGetTensorImpl()));
      } else {
        site.inputs.push_back(describe_input(session, tensor));
      }
    } else if (value.isTensorList()) {
      const auto list = value.toListRef();
      for (std::size_t k = 0; k < std::min(list.size(), max_list_entries); ++k) {
        if (list[k].isTensor() && list[k].toTensor().defined()) {
          site.inputs.push_back(describe_input(session, list[k].toTensor()));
        }
      }
    } else if (value.isDouble()) {
      scalar(value.toDouble());
    } else if (value.isInt()) {
      scalar(static_cast<double>(value.toInt()));
    } else if (value.isBool()) {
      scalar(value.toBool() ? 1 : 0);
    }
  }
}

SiteState* create(Session& session, ThreadState& thread, const Frame& frame, SiteState* parent, std::uint64_t key,
                  c10::ArrayRef<const c10::IValue> inputs) {
  SiteState* site = make_site(session, frame.op, parent, key);
  if (!site) return nullptr;
  site->phase = frame.phase;
  trace::Site& d = *site->definition;
  d.id = site->id;
  d.parent = parent ? parent->id : trace::none;
  d.kind = frame.kind == FrameKind::backward_node ? trace::SiteKind::backward_node
           : frame.op->is_range()                 ? trace::SiteKind::range
                                                  : trace::SiteKind::op;
  d.phase = frame.phase;
  d.name = frame.op->name;
  d.overload = frame.op->overload;
  d.thread = thread.slot;
  d.autocast = frame.autocast;
  d.autocast_dtype = frame.autocast ? frame.autocast_dtype : trace::DType::unknown;
  d.autocast_device = frame.autocast ? (frame.autocast_on_cuda ? "cuda" : "cpu") : "";
  d.grad_enabled = c10::GradMode::is_enabled();
  d.in_recompute = frame.recompute;
  d.traced = at::tracer::impl::is_dispatch_enabled();
  d.autocast_cache = frame.autocast && at::autocast::is_autocast_cache_enabled();
  d.autocast_elsewhere =
      !frame.autocast && session.autocast_threads.load(std::memory_order_relaxed) > (thread.autocast ? 1 : 0);
  describe_inputs(session, d, *frame.op, inputs);
  // What it is computed in: its own first floating input, or that of the op of the same name inside it, which is what
  // autocast called after its casts.
  for (const trace::TensorType& input : d.inputs) {
    if (trace::is_floating(input.dtype)) {
      site->compute_dtype = input.dtype;
      break;
    }
  }
  if (parent && parent->op && parent->op->name == frame.op->name && site->compute_dtype != trace::DType::unknown) {
    parent->compute_dtype = site->compute_dtype;
  }
  return site;
}

void place(Session& session, SiteState& site, PythonPlace&& where) {
  trace::Site& d = *site.definition;
  d.source = std::move(where.source);
  d.stack = std::move(where.stack);
  d.has_module = where.has_module;
  d.module = std::move(where.module);
  d.module_class = std::move(where.module_class);
  d.api = std::move(where.api);
  d.api_arguments = std::move(where.api_arguments);
  site.api = d.api;
  site.scales_loss = d.api == "GradScaler.scale" && site.op->meaning == Meaning::multiply;
  const Meaning meaning = site.op->meaning;
  if (meaning == Meaning::optimizer_range || meaning == Meaning::unscale || meaning == Meaning::update_scale) {
    const std::lock_guard lock(session.protocol.mutex);
    session.protocol.sources_by_site[site.id] = d.source;
  }
}

/// Without Python: the module of the parameter that the op uses.
void place_by_parameter(Session& session, SiteState& site, std::int64_t parameter) {
  if (parameter < 0) return;
  const std::lock_guard lock(session.protocol.mutex);
  const trace::Parameter& p = session.protocol.parameters[static_cast<std::size_t>(parameter)];
  trace::Site& d = *site.definition;
  if (p.module.empty() && p.module_class.empty()) return;
  d.has_module = true;
  d.module = p.module;
  d.module_class = p.module_class;
}

std::int64_t parameter_among(Session& session, c10::ArrayRef<const c10::IValue> inputs) {
  for (const c10::IValue& value : inputs) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const std::int64_t parameter = parameter_at(session, address_of(*value.toTensor().unsafeGetTensorImpl()));
    if (parameter >= 0) return parameter;
  }
  return trace::none;
}

/// The tensors a running op was given, as far as they are still there.
std::vector<c10::IValue> kept_inputs(const Frame& frame) {
  std::vector<c10::IValue> inputs;
  for (std::uint8_t i = 0; i < frame.input_count; ++i) {
    auto strong = frame.inputs[i].tensor.lock();
    if (strong) inputs.emplace_back(at::Tensor(std::move(strong)));
  }
  return inputs;
}

c10::ArrayRef<const c10::IValue> as_inputs(const std::vector<c10::IValue>& values) {
  return c10::ArrayRef<const c10::IValue>(values.data(), values.size());
}

SiteState* find_or_create(Session& session, ThreadState& thread, const Frame& frame, SiteState* parent,
                          std::uint64_t full_key, std::uint64_t key, c10::ArrayRef<const c10::IValue> inputs,
                          bool& created) {
  created = false;
  ThreadState::KnownSite& known = thread.known_sites[full_key & (thread.known_sites.size() - 1)];
  if (known.site && known.key == full_key) return known.site;
  const auto found = thread.sites.find(full_key);
  SiteState* site = found != thread.sites.end() ? found->second : nullptr;
  if (!site) {
    site = create(session, thread, frame, parent, key, inputs);
    if (!site) return nullptr;
    thread.sites.emplace(full_key, site);
    created = true;
  }
  known = {full_key, site};
  return site;
}

}  // namespace

namespace {

/// The same operators may be those of another model, or another layer: the parameter that a site uses tells.
bool uses_other_parameter(const SiteState& site, c10::ArrayRef<const c10::IValue> inputs) {
  if (!site.parameter) return false;
  const auto index = static_cast<std::size_t>(site.parameter_argument);
  const at::Tensor* const tensor = index < inputs.size() ? tensor_of(inputs[index]) : nullptr;
  return !tensor || tensor->unsafeGetTensorImpl() != site.parameter;
}

void note_parameter_used(SiteState& site, c10::ArrayRef<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor* const tensor = tensor_of(inputs[i]);
    if (!tensor || !tensor->requires_grad() || !tensor->is_leaf()) continue;
    site.parameter = tensor->unsafeGetTensorImpl();
    site.parameter_argument = static_cast<std::int16_t>(i);
    return;
  }
}

/// Whether the lines that led here are those of a function's own backward. Where a library brought the function, the
/// only line is the one that called backward() on the loss, which says nothing.
bool in_backward_of_program(const trace::Site& site) {
  const auto is_backward = [](const trace::SourceLine& line) {
    return line.function == "backward" || line.function.ends_with(".backward");
  };
  return is_backward(site.source) || std::any_of(site.stack.begin(), site.stack.end(), is_backward);
}

/// The innermost lines of what the engine does by itself are those of the call of backward().
bool of_engine(const PythonPlace& where) {
  return where.api == "backward" || where.api == "autograd.grad";
}

/// The node that accumulates a gradient; what the program calls in it, its hooks call.
bool accumulates(const SiteState* node) {
  return node && node->op->name == "torch::autograd::AccumulateGrad";
}

/// Whether a range ("Optimizer.step#Lion.step") is the step of an optimizer that torch does not bring: its update is
/// the program's own code.
bool is_programs_optimizer(std::string_view range) noexcept {
  constexpr std::string_view prefix = "Optimizer.step#";
  constexpr std::string_view suffix = ".step";
  if (!range.starts_with(prefix) || !range.ends_with(suffix)) return false;
  range.remove_prefix(prefix.size());
  range.remove_suffix(suffix.size());
  static constexpr std::array<std::string_view, 15> known = {"ASGD",  "Adadelta", "Adafactor", "Adagrad", "Adam",
                                                             "AdamW", "Adamax",   "LBFGS",     "Muon",    "NAdam",
                                                             "RAdam", "RMSprop",  "Rprop",     "SGD",     "SparseAdam"};
  return std::find(known.begin(), known.end(), range) == known.end();
}

}  // namespace

SiteState* resolve_outer(Session& session, ThreadState& thread, Frame& frame, std::uint64_t key,
                         c10::ArrayRef<const c10::IValue> inputs) {
  SiteState* predicted = thread.last_outer ? thread.last_outer->predicted_next : nullptr;
  SiteState* parent = thread.depth >= 2 ? thread.frames[thread.depth - 2].site : nullptr;
  const bool python = python_connected();
  SiteState* site = nullptr;
  frame.site_from = SiteFrom::frames;
  // Without Python the place follows from the arguments, which costs less than being wrong.
  const bool walks =
      session.walks_frames.load(std::memory_order_relaxed) && thread.clock - thread.step_clock < walked_calls;
  if (python && predicted && predicted->key == key && predicted->parent == parent && !walks &&
      !uses_other_parameter(*predicted, inputs)) {
    site = predicted;
    frame.site_from = SiteFrom::prediction;
  } else {
    bool created = false;
    const std::uint64_t stack = python ? python_stack_hash() : 0;
    if (stack != 0) {
      site = find_or_create(session, thread, frame, parent, combine(combine(key, stack), parent ? parent->key : 0), key,
                            inputs, created);
      if (created) {
        PythonPlace where = python_place();
        const bool in_hook = accumulates(parent) && !of_engine(where);
        place(session, *site, std::move(where));
        if (frame.phase == trace::Phase::backward && !in_hook && !in_backward_of_program(*site->definition))
          site->definition->source = {};
        note_parameter_used(*site, inputs);
      } else if (site && uses_other_parameter(*site, inputs)) {
        site->parameter = nullptr;  // One line, several parameters.
      }
    } else {
      // A program in C++ has no frames to look at. The parameters it uses tell its layers apart, and what has none is
      // told apart by the layer it follows.
      const std::int64_t parameter = parameter_among(session, inputs);
      if (parameter >= 0) thread.last_parameter = static_cast<std::uintptr_t>(parameter + 1);
      site = find_or_create(session, thread, frame, parent, combine(combine(key, thread.last_parameter), 0x51), key,
                            inputs, created);
      if (created) place_by_parameter(session, *site, parameter);
    }
    if (created && site->op->is_range() && (frame.kind == FrameKind::op || is_programs_optimizer(site->op->name)))
      site->is_python_function = true;
  }
  if (site) {
    if (thread.last_outer) thread.last_outer->predicted_next = site;
    thread.last_outer = site;
  }
  return site;
}

SiteState* resolve_inner(Session& session, ThreadState& thread, const Frame& frame, SiteState& parent, Frame* outer,
                         std::uint64_t key, c10::ArrayRef<const c10::IValue> inputs) {
  SiteState*& expected = outer && outer->last_inside ? outer->last_inside->predicted_next : parent.first_inside;
  SiteState* site = expected;
  if (!site || site->key != key || site->parent != &parent) {
    bool created = false;
    const auto full_key = combine(combine(key, static_cast<std::uint64_t>(parent.id)), 0x1a);
    site = find_or_create(session, thread, frame, &parent, full_key, key, inputs, created);
    expected = site;
  }
  if (outer) outer->last_inside = site;
  return site;
}

SiteState* resolve_between_nodes(Session& session, ThreadState& thread, const Frame& frame, SiteState& latest_node,
                                 std::uint64_t key, c10::ArrayRef<const c10::IValue> inputs) {
  bool created = false;
  const auto full_key = combine(combine(key, static_cast<std::uint64_t>(latest_node.id)), 0x1b);
  SiteState* const site = find_or_create(session, thread, frame, &latest_node, full_key, key, inputs, created);
  if (!created || !python_connected()) return site;
  if (PythonPlace where = python_place(); !of_engine(where)) {
    place(session, *site, std::move(where));
  }
  return site;
}

void confirm_sites(Session& session, ThreadState& thread, c10::ArrayRef<c10::IValue> outputs) {
  std::size_t index = thread.depth;
  while (index > 0 && thread.frames[index - 1].site_from == SiteFrom::parent)
    --index;
  if (index == 0 || thread.frames[index - 1].site_from != SiteFrom::prediction) return;
  Frame& called = thread.frames[index - 1];
  called.site_from = SiteFrom::frames;
  SiteState* const predicted = called.site;
  const std::uint64_t stack = predicted ? python_stack_hash() : 0;
  if (stack == 0) return;
  bool created = false;
  SiteState* parent = predicted->parent;
  const auto full_key = combine(combine(predicted->key, stack), parent ? parent->key : 0);
  const std::vector<c10::IValue> inputs = kept_inputs(called);
  SiteState* site =
      find_or_create(session, thread, called, parent, full_key, predicted->key, as_inputs(inputs), created);
  if (created) place(session, *site, python_place());
  if (!site || site == predicted) return;
  if (predicted->is_python_function) site->is_python_function = true;
  called.site = site;
  if (thread.last_outer == predicted) thread.last_outer = site;

  const std::int64_t taken_for = thread.frames[thread.depth - 1].site ? thread.frames[thread.depth - 1].site->id : -1;
  for (; index < thread.depth; ++index) {
    Frame& inside = thread.frames[index];
    if (!inside.site) continue;  // A range that only groups.
    const std::vector<c10::IValue> its_inputs = kept_inputs(inside);
    inside.site = resolve_inner(session, thread, inside, *site, nullptr, inside.site->key, as_inputs(its_inputs));
    if (!inside.site) return;
    site = inside.site;
  }
  for (const c10::IValue& value : outputs) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const void* address = address_of(*value.toTensor().unsafeGetTensorImpl());
    ProducerTable::Entry made = session.producers.find(address);
    if (!made.known || made.site != taken_for) continue;
    made.site = site->id;
    session.producers.put(address, made);
  }
}

SiteState* resolve_node(Session& session, ThreadState& thread, const Frame& frame, std::int64_t forward_site) {
  bool created = false;
  std::uint64_t key = combine(frame.op->id, static_cast<std::uint64_t>(forward_site + 1));
  key = combine(key, frame.autocast ? 1 : 0);
  if (frame.variable) key = combine(key, reinterpret_cast<std::uint64_t>(frame.variable));
  SiteState* site = find_or_create(session, thread, frame, nullptr, combine(key, 0xb0), key, {}, created);
  if (created) {
    site->forward_site = forward_site;
    site->definition->forward_site = forward_site;
    // Nodes of torch carry a number at the end of their names, those of a program's autograd.Function do not.
    site->is_python_function = frame.op->name.ends_with("Backward");
    // Backward under autocast is a mistake whose place is the call of backward(), which the forward op cannot tell. The
    // engine runs on the calling thread, or on one without Python frames.
    if (frame.autocast && python_connected()) site->definition->source = python_place().source;
  }
  return site;
}

void publish(Session& session, SiteState& site, c10::ArrayRef<c10::IValue> outputs) {
  trace::Site& d = *site.definition;
  for (const c10::IValue& value : outputs) {
    if (value.isTensor() && value.toTensor().defined()) {
      d.outputs.push_back(type_of(*value.toTensor().unsafeGetTensorImpl()));
    } else if (value.isTensorList()) {
      const auto list = value.toListRef();
      for (std::size_t k = 0; k < std::min(list.size(), max_list_entries); ++k) {
        if (list[k].isTensor() && list[k].toTensor().defined()) {
          d.outputs.push_back(type_of(*list[k].toTensor().unsafeGetTensorImpl()));
        }
      }
    }
  }
  if (site.compute_dtype == trace::DType::unknown) {
    for (const trace::TensorType& output : d.outputs) {
      if (trace::is_floating(output.dtype)) {
        site.compute_dtype = output.dtype;
        break;
      }
    }
  }
  d.compute_dtype = site.compute_dtype;
  session.recorder.define(std::move(d));
  site.definition.reset();
}

}  // namespace ampscope::observe
