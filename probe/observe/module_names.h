// Names of parameters and modules of programs in C++.
#pragma once

#include <cstdint>

#include "probe/observe/session.h"

namespace ampscope::observe {

/// `module` is a torch::nn::Module whose parameters() the program has just asked for: the model, or a part of it.
void note_module(Session& session, void* module);
void note_parameter_name(Session& session, std::uintptr_t tensor, std::uintptr_t data, const char* name,
                         const char* module, const char* module_class);

}  // namespace ampscope::observe
