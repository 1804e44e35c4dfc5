// LibTorch's optimizers and schedulers open no range, as those of PyTorch's Python do. The preload stub stands before
// them; here their calls get the same ranges, so that all that watches ranges sees a C++ program as it sees a Python
// one.

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>

#include <ATen/record_function.h>
#include <cxxabi.h>

#include "ampscope/interposed.h"
#include "probe/observe/lifecycle.h"
#include "probe/observe/op_info.h"
#include "probe/observe/scaler_observer.h"
#include "probe/observe/session.h"

namespace ampscope::observe {
namespace {

/// Anything with virtual functions: enough for its class's name.
class Polymorphic {
 public:
  virtual ~Polymorphic();
};

/// "Adam" for torch::optim::Adam.
std::string readable_class(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? readable.get() : type.name();
  const std::size_t end = name.find('<');  // template arguments have namespaces of their own
  const std::size_t colon = name.rfind("::", end);
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 2;
  return name.substr(begin, end == std::string::npos ? end : end - begin);
}

struct RangeName {
  const std::type_info* type = nullptr;
  Meaning meaning = Meaning::plain;
  std::string class_name;
  std::string text;
};

/// Made once for each class. It stays where it is: a range keeps only a view of its name.
const RangeName& range_name(Meaning meaning, const char* what, const char* method, const void* object) {
  thread_local std::deque<RangeName> known;
  const std::type_info& type = typeid(*static_cast<const Polymorphic*>(object));
  for (const RangeName& name : known) {
    if (name.type == &type && name.meaning == meaning) return name;
  }
  const std::string class_name = readable_class(type);
  return known.emplace_back(RangeName{&type, meaning, class_name, std::string(what) + '#' + class_name + '.' + method});
}

bool inside(const ThreadState& thread, Meaning meaning) noexcept {
  for (std::size_t i = 0; i < thread.depth; ++i) {
    if (thread.frames[i].op && thread.frames[i].op->meaning == meaning) return true;
  }
  return false;
}

/// A range around a call. None where the program has opened it itself, and where nobody observes.
class AnnouncedCall {
 public:
  AnnouncedCall(Meaning meaning, const char* what, const char* method, void* object) noexcept {
    try {
      const State now = state();
      Session* const current = now == State::awake || now == State::recording ? session() : nullptr;
      ThreadState* const thread = current ? thread_state(*current) : nullptr;
      if (!thread || thread->busy || inside(*thread, meaning)) return;
      range_.emplace(at::RecordScope::USER_SCOPE);
      if (!range_->isActive()) return;
      const RangeName& name = range_name(meaning, what, method, object);
      thread->object_follows = true;
      range_->before(name.text, c10::ArrayRef<const c10::IValue>{});
      thread->object_follows = false;
      if (meaning == Meaning::optimizer_range) {
        optimizer_told(*current, *thread, reinterpret_cast<std::uintptr_t>(object), name.class_name,
                       std::numeric_limits<double>::quiet_NaN(), false);
      }
    } catch (const std::exception& error) {
      give_up(error.what());
    }
  }

 private:
  std::optional<at::RecordFunction> range_;
};

}  // namespace
}  // namespace ampscope::observe

using ampscope::observe::AnnouncedCall;
using ampscope::observe::Meaning;

extern "C" {

ampscope::ReturnedTensor ampscope_cxx_optimizer_step(ampscope::OptimizerStep real, void* optimizer, void* closure) {
  const AnnouncedCall call(Meaning::optimizer_range, "Optimizer.step", "step", optimizer);
  return real(optimizer, closure);
}

void ampscope_cxx_zero_grad(ampscope::ZeroGrad real, void* optimizer, bool set_to_none) {
  const AnnouncedCall call(Meaning::zero_grad_range, "Optimizer.zero_grad", "zero_grad", optimizer);
  real(optimizer, set_to_none);
}

void ampscope_cxx_schedule_step(ampscope::ScheduleStep real, void* schedule) {
  const AnnouncedCall call(Meaning::schedule_range, "LRScheduler.step", "step", schedule);
  real(schedule);
}

void ampscope_cxx_schedule_step_by_metric(ampscope::ScheduleStepByMetric real, void* schedule, float metric) {
  const AnnouncedCall call(Meaning::schedule_range, "LRScheduler.step", "step", schedule);
  real(schedule, metric);
}

}  // extern "C"
