// What the preload stub hands over to the adapter of calls that it stands before: each with the function of libtorch
// that was to be called, which the adapter calls inside the range that PyTorch's Python gives such a call.
//
// By the Itanium C++ ABI an argument of a type that is not trivial (std::function) is the address of the caller's
// temporary, and such a result (at::Tensor) is returned through a hidden address. Exceptions pass through.
#pragma once

#include "ampscope/probe_c.h"

namespace ampscope {

/// An at::Tensor to the calling convention. Never made or destroyed here.
struct ReturnedTensor {
  void* words[1];
  ~ReturnedTensor();
};

using OptimizerStep = ReturnedTensor (*)(void* optimizer, void* closure);
using ZeroGrad = void (*)(void* optimizer, bool set_to_none);
using ScheduleStep = void (*)(void* schedule);
using ScheduleStepByMetric = void (*)(void* schedule, float metric);

}  // namespace ampscope

extern "C" {

AMPSCOPE_API ampscope::ReturnedTensor ampscope_cxx_optimizer_step(ampscope::OptimizerStep real, void* optimizer,
                                                                  void* closure);
AMPSCOPE_API void ampscope_cxx_zero_grad(ampscope::ZeroGrad real, void* optimizer, bool set_to_none);
AMPSCOPE_API void ampscope_cxx_schedule_step(ampscope::ScheduleStep real, void* schedule);
AMPSCOPE_API void ampscope_cxx_schedule_step_by_metric(ampscope::ScheduleStepByMetric real, void* schedule,
                                                       float metric);

}  // extern "C"
