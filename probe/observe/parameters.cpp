// Parameters and their gradients, known again by where they lie in memory.
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

}  // namespace ampscope::observe
