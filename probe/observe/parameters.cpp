// Parameters and their gradients, known again by where they lie in memory.
#include <algorithm>
#include <string>
#include <utility>

#include "probe/observe/protocol_events.h"
#include "probe/observe/round_trips.h"
#include "probe/observe/tensor_access.h"

namespace ampscope::observe {
namespace {

const Protocol::Name* name_of(const Protocol& p, const c10::TensorImpl& leaf, const void* address) {
  if (const auto found = p.names_by_tensor.find(reinterpret_cast<std::uintptr_t>(&leaf));
      found != p.names_by_tensor.end()) {
    return &found->second;
  }
  // The tensor object of a parameter may differ from the one that was named (C++ handles, .data); its memory does not.
  const auto found = p.names_by_data.find(reinterpret_cast<std::uintptr_t>(address));
  return address && found != p.names_by_data.end() ? &found->second : nullptr;
}

std::int64_t element_count(const c10::TensorImpl& tensor) {
  return tensor.has_symbolic_sizes_strides() ? 0 : tensor.numel();
}

void keep_variable(Protocol& p, std::size_t parameter, const at::Tensor& variable) {
  while (p.variables.size() <= parameter)
    p.variables.emplace_back(at::Tensor().getIntrusivePtr());
  p.variables[parameter] = WeakTensor(variable.getIntrusivePtr());
}

/// Undefined where the parameter is gone or has none.
at::Tensor gradient_of(const Protocol& p, std::size_t parameter) {
  auto strong = p.variables[parameter].lock();
  if (!strong) return {};
  const at::Tensor variable(std::move(strong));
  return variable.defined() ? variable.grad() : at::Tensor();
}

void add_gradient_of(const Protocol& p, std::size_t parameter, Gradients& found) {
  if (at::Tensor gradient = gradient_of(p, parameter); gradient.defined()) {
    found.emplace_back(static_cast<std::int64_t>(parameter), std::move(gradient));
  }
}

}  // namespace

std::int64_t parameter_of(Session& session, const c10::TensorImpl& leaf) {
  Protocol& p = session.protocol;
  const void* address = address_of(leaf);
  const std::lock_guard lock(p.mutex);
  if (const std::int64_t known = session.parameters.find(address); known >= 0) {
    const trace::Parameter& parameter = p.parameters[static_cast<std::size_t>(known)];
    // Memory is reused when a model is replaced; another shape is another parameter.
    if (parameter.count == element_count(leaf) && parameter.dtype == dtype_of(leaf)) {
      parameter_replaced(session, address, known);
      return known;
    }
  }
  const trace::TensorType type = type_of(leaf);
  trace::Parameter parameter;
  parameter.id = static_cast<std::int64_t>(p.parameters.size());
  parameter.dtype = type.dtype;
  parameter.shape = type.shape;
  parameter.count = element_count(leaf);
  parameter.device = type.device;
  if (const Protocol::Name* name = name_of(p, leaf, address)) {
    parameter.name = name->name;
    parameter.module = name->module;
    parameter.module_class = name->module_class;
  } else {
    parameter.name = "parameter " + std::to_string(parameter.id);
  }
  parameter.first_step = p.ledger.step();
  // A module that is cast, or whose .data is assigned, keeps its tensors and gives them other memory.
  for (std::size_t i = p.variables.size(); i-- > 0;) {
    const auto before = p.variables[i].lock();
    if (!before || before.get() != &leaf) continue;
    parameter.replaces = static_cast<std::int64_t>(i);
    if (const ProducerTable::Entry made = session.producers.find(address); made.known) parameter.made_by = made.site;
    parameter.name = p.parameters[i].name;
    parameter.module = p.parameters[i].module;
    parameter.module_class = p.parameters[i].module_class;
    parameter.optimizer = p.parameters[i].optimizer;
    parameter_replaced(session, address, parameter.id);
    break;
  }
  p.parameters.push_back(parameter);
  session.parameters.put(address, parameter.id, static_cast<std::uint32_t>(parameter.id));
  session.recorder.define(parameter);
  return parameter.id;
}

std::int64_t named_parameter(Session& session, const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!tensor.requires_grad() || !tensor.is_leaf()) return trace::none;
  {
    const std::lock_guard lock(session.protocol.mutex);
    if (name_of(session.protocol, impl, address_of(impl)) == nullptr) return trace::none;
  }
  return learn_parameter(session, tensor);
}

std::int64_t parameter_at(Session& session, const void* address) {
  const std::int64_t parameter = session.parameters.find(address);
  if (parameter < 0) return trace::none;
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const auto index = static_cast<std::size_t>(parameter);
  // The memory of a parameter that is gone serves other tensors.
  return index < p.variables.size() && p.variables[index].expired() ? trace::none : parameter;
}

std::int64_t gradient_at(Session& session, const void* address) {
  const std::int64_t parameter = session.gradients.find(address);
  if (parameter < 0) return trace::none;
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const auto index = static_cast<std::size_t>(parameter);
  if (index >= p.variables.size()) return trace::none;
  auto strong = p.variables[index].lock();
  if (!strong) return trace::none;
  const at::Tensor variable(std::move(strong));
  // Gradients are freed and made anew in every step; their old memory serves other tensors in between.
  const bool current =
      variable.defined() && variable.grad().defined() && address_of(*variable.grad().unsafeGetTensorImpl()) == address;
  return current ? parameter : trace::none;
}

std::int64_t learn_parameter(Session& session, const at::Tensor& leaf) {
  const std::int64_t parameter = parameter_of(session, *leaf.unsafeGetTensorImpl());
  if (parameter < 0) return parameter;
  const std::lock_guard lock(session.protocol.mutex);
  keep_variable(session.protocol, static_cast<std::size_t>(parameter), leaf);
  return parameter;
}

void note_gradient(Session& session, std::int64_t parameter, const at::Tensor& variable) {
  if (parameter < 0) return;
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const auto index = static_cast<std::size_t>(parameter);
  keep_variable(p, index, variable);
  if (p.fresh_gradients.size() <= index) p.fresh_gradients.resize(index + 1, 0);
  p.fresh_gradients[index] = 1;
  if (p.arrived_gradients.size() <= index) p.arrived_gradients.resize(index + 1, nullptr);
  p.arrived_gradients[index] = variable.grad().defined() ? address_of(*variable.grad().unsafeGetTensorImpl()) : nullptr;
}

void gradients_were_exchanged(Session& session) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  for (std::size_t index = 0; index < std::min(p.arrived_gradients.size(), p.variables.size()); ++index) {
    if (!p.arrived_gradients[index]) continue;
    const at::Tensor gradient = gradient_of(p, index);
    if (!gradient.defined()) continue;
    const void* const address = address_of(*gradient.unsafeGetTensorImpl());
    if (p.arrived_gradients[index] == address) continue;
    p.arrived_gradients[index] = address;
    session.gradients.put(address, static_cast<std::int64_t>(index),
                          static_cast<std::uint32_t>(session.step.load(std::memory_order_relaxed)) + 1);
  }
}

bool has_arrived_at(Session& session, std::int64_t parameter, const void* address) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const auto index = static_cast<std::size_t>(parameter);
  return parameter >= 0 && index < p.arrived_gradients.size() && p.arrived_gradients[index] == address;
}

void take_fresh_gradients(Session& session, std::int64_t optimizer, Gradients& taken) {
  taken.clear();
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  for (std::size_t index = 0; index < p.fresh_gradients.size(); ++index) {
    if (!p.fresh_gradients[index]) continue;
    const std::int64_t owner = p.parameters[index].optimizer;
    if (optimizer >= 0 && owner >= 0 && owner != optimizer) continue;
    p.fresh_gradients[index] = 0;
    add_gradient_of(p, index, taken);
  }
}

void hold_gradients(Session& session, std::vector<std::pair<std::int64_t, std::size_t>>& held) {
  held.clear();
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  if (p.optimizers.size() < 2) return;
  for (std::size_t index = 0; index < p.variables.size() && held.size() < p.optimizers.size(); ++index) {
    const std::int64_t owner = p.parameters[index].optimizer;
    const auto of_owner = [&](const auto& entry) { return entry.first == owner; };
    if (owner >= 0 && std::none_of(held.begin(), held.end(), of_owner) && gradient_of(p, index).defined())
      held.emplace_back(owner, index);
  }
}

std::int64_t optimizer_cleared(Session& session, const std::vector<std::pair<std::int64_t, std::size_t>>& held) {
  const std::lock_guard lock(session.protocol.mutex);
  const auto cleared = std::find_if(held.begin(), held.end(), [&](const auto& entry) {
    return !gradient_of(session.protocol, entry.second).defined();
  });
  return cleared != held.end() ? cleared->first : trace::none;
}

bool gradients_replaced(Session& session, std::int64_t optimizer) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  Gradients found;
  for (std::size_t index = 0; index < p.arrived_gradients.size(); ++index) {
    const std::int64_t owner = p.parameters[index].optimizer;
    if (p.arrived_gradients[index] && (optimizer < 0 || owner < 0 || owner == optimizer))
      add_gradient_of(p, index, found);
  }
  return std::any_of(found.begin(), found.end(), [&](const auto& gradient) {
    return p.arrived_gradients[static_cast<std::size_t>(gradient.first)] !=
           address_of(*gradient.second.unsafeGetTensorImpl());
  });
}

void known_gradients(Session& session, std::int64_t optimizer, Gradients& found) {
  found.clear();
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  for (std::size_t index = 0; index < p.variables.size(); ++index) {
    const std::int64_t owner = p.parameters[index].optimizer;
    if (optimizer < 0 || owner < 0 || owner == optimizer) add_gradient_of(p, index, found);
  }
}

void forget_fresh_gradient(Session& session, std::int64_t parameter) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const auto index = static_cast<std::size_t>(parameter);
  if (parameter >= 0 && index < p.fresh_gradients.size()) p.fresh_gradients[index] = 0;
}

}  // namespace ampscope::observe
