#include "probe/observe/module_names.h"

#include <torch/nn/module.h>

#include "probe/observe/tensor_access.h"

namespace ampscope::observe {

void note_parameter_name(Session& session, std::uintptr_t tensor, std::uintptr_t data, const char* name,
                         const char* module, const char* module_class) {
  Protocol& p = session.protocol;
  const std::lock_guard lock(p.mutex);
  const Protocol::Name entry{name, module, module_class};
  if (tensor) {
    const auto known = p.names_by_tensor.find(tensor);
    // The whole model knows the longest path; a part that is asked later knows only its own.
    if (known == p.names_by_tensor.end() || known->second.name.size() <= entry.name.size()) {
      p.names_by_tensor[tensor] = entry;
    }
  }
  if (data) p.names_by_data[data] = entry;
}

void note_module(Session& session, void* module) {
  const auto* root = static_cast<const torch::nn::Module*>(module);
  for (const auto& item : root->named_modules(std::string(), true)) {
    const torch::nn::Module& part = *item.value();
    std::string kind = part.name();
    // "torch::nn::LinearImpl" → "Linear"
    if (const auto colon = kind.rfind("::"); colon != std::string::npos) kind = kind.substr(colon + 2);
    if (kind.size() > 4 && kind.ends_with("Impl")) kind.resize(kind.size() - 4);
    for (const auto& parameter : part.named_parameters(false)) {
      const at::Tensor& tensor = parameter.value();
      if (!tensor.defined()) continue;
      const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
      const std::string name = item.key().empty() ? parameter.key() : item.key() + "." + parameter.key();
      note_parameter_name(session, reinterpret_cast<std::uintptr_t>(&impl),
                          reinterpret_cast<std::uintptr_t>(address_of(impl)), name.c_str(), item.key().c_str(),
                          kind.c_str());
    }
  }
}

}  // namespace ampscope::observe
