// The callbacks that torch calls around every op, autograd node and range.
#pragma once

#include <memory>

#include <ATen/record_function.h>

namespace ampscope::observe {

std::unique_ptr<at::ObserverContext> start_callback(const at::RecordFunction& function);
void end_callback(const at::RecordFunction& function, at::ObserverContext* context);

}  // namespace ampscope::observe
