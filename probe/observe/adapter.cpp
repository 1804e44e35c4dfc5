// The C interface over observation: the only symbols this library shows.

#include <string>

#include <torch/version.h>

#include "probe/api/ampscope/probe_c.h"
#include "probe/observe/autocast_objects.h"
#include "probe/observe/lifecycle.h"
#include "probe/observe/module_names.h"
#include "probe/observe/protocol_events.h"
#include "probe/observe/python_frames.h"
#include "probe/observe/scaler_observer.h"
#include "probe/observe/ticks.h"

#define AMPSCOPE_TEXT_OF(value) #value
#define AMPSCOPE_TEXT(value) AMPSCOPE_TEXT_OF(value)

namespace {

using namespace ampscope::observe;

thread_local std::string last_error;

/// The session of a process that is being observed and awake, else null.
Session* observed() noexcept {
  const State now = state();
  return now == State::awake || now == State::recording ? session() : nullptr;
}

template <typename Body>
void with_thread(Body&& body) noexcept {
  try {
    Session* current = observed();
    ThreadState* thread = current ? thread_state(*current) : nullptr;
    if (!thread) return;
    if (!current->budget) {
      body(*current, *thread);
      return;
    }
    const std::uint64_t start = ticks();
    body(*current, *thread);
    thread->step_ticks +=
        static_cast<std::int64_t>(ticks() - start) + current->note_ticks.load(std::memory_order_relaxed);
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

}  // namespace

extern "C" {

int ampscope_abi_version(void) {
  return AMPSCOPE_ABI_VERSION;
}

const char* ampscope_torch_version(void) {
  return AMPSCOPE_TEXT(TORCH_VERSION_MAJOR) "." AMPSCOPE_TEXT(TORCH_VERSION_MINOR);
}

const char* ampscope_last_error(void) {
  return last_error.c_str();
}

int ampscope_attach(void) {
  try {
    last_error = attach();
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return last_error.empty() ? 0 : -1;
}

void ampscope_detach(const char* how, const char* detail) {
  detach(how ? how : "detach", detail ? detail : "");
}

int ampscope_is_attached(void) {
  return state() == State::off ? 0 : 1;
}

void ampscope_mark_step(void) {
  with_thread([](Session& current, ThreadState& thread) { mark_step(current, thread); });
}

const char* ampscope_trace_path(void) {
  thread_local std::string path;
  Session* current = session();
  path = current ? current->recorder.path() : "";
  return path.c_str();
}

void ampscope_note_optimizer_step(uintptr_t object, const char* class_name, double learning_rate, int through_scaler,
                                  int begin) {
  if (!begin) return;  // The end of torch's own range around the step says the rest.
  with_thread([&](Session& current, ThreadState& thread) {
    optimizer_told(current, thread, object, class_name ? class_name : "", learning_rate, through_scaler != 0);
  });
}

void ampscope_note_schedule_step(uintptr_t object, const char* class_name, uintptr_t optimizer, int from_constructor) {
  with_thread([&](Session& current, ThreadState& thread) {
    schedule_stepped(current, thread, object, class_name ? class_name : "", optimizer, from_constructor != 0);
  });
}

void ampscope_note_scale_read(uintptr_t scaler, int as_factor) {
  with_thread([&](Session& current, ThreadState&) { scale_read(current, scaler, as_factor != 0, as_factor == 2); });
}

void ampscope_note_scaler_made(uintptr_t scaler) {
  with_thread([&](Session& current, ThreadState&) { scaler_made(current, scaler); });
}

void ampscope_note_scaler_restored(uintptr_t scaler) {
  with_thread([&](Session& current, ThreadState&) { scaler_restored(current, scaler); });
}

void ampscope_note_optimizer_restored(uintptr_t optimizer) {
  with_thread([&](Session& current, ThreadState&) { optimizer_restored(current, optimizer); });
}

void ampscope_note_scaler_refusal(uintptr_t optimizer, const char* class_name, uint32_t reason) {
  with_thread([&](Session& current, ThreadState& thread) {
    note_refusal(current, thread, optimizer, class_name ? class_name : "", reason);
  });
}

int64_t ampscope_note_autocast(const char* file, int line, const char* function, const char* device,
                               const char* dtype) {
  std::int64_t made = -1;
  with_thread([&](Session& current, ThreadState& thread) {
    made = autocast_made(current, thread, {file ? file : "", line, function ? function : ""}, device ? device : "",
                         dtype ? dtype : "");
  });
  return made;
}

void ampscope_note_autocast_use(int64_t made) {
  with_thread([&](Session& current, ThreadState& thread) { autocast_used(current, thread, made); });
}

void ampscope_note_scaler_region(int begin) {
  with_thread([&](Session& current, ThreadState& thread) { scaler_region(current, thread, begin != 0); });
}

void ampscope_note_optimizer_made(void) {
  Session* const current = observed();
  if (!current) return;
  current->objects_made.fetch_add(1, std::memory_order_relaxed);
  current->optimizer_made.store(true, std::memory_order_relaxed);
}

int64_t ampscope_python_calls(void) {
  return python_calls();
}

void ampscope_note_cost(double nanoseconds) {
  Session* current = observed();
  if (!current || !(nanoseconds >= 0)) return;
  current->note_ticks.store(ns_to_ticks(nanoseconds), std::memory_order_relaxed);
}

void ampscope_note_parameter(uintptr_t tensor, uintptr_t data, const char* name, const char* module,
                             const char* module_class) {
  with_thread([&](Session& current, ThreadState&) {
    note_parameter_name(current, tensor, data, name ? name : "", module ? module : "",
                        module_class ? module_class : "");
  });
}

void ampscope_cxx_module_parameters(void* module) {
  with_thread([&](Session& current, ThreadState& thread) {
    if (!module || thread.busy) return;
    thread.busy = true;  // Asking a module may copy tensors; nothing of that is the program's.
    try {
      note_module(current, module);
    } catch (...) {  // A module in the middle of its construction.
    }
    thread.busy = false;
  });
}

void ampscope_cxx_register_parameter(void* module, const char* name, void* tensor_impl) {
  static_cast<void>(module);
  with_thread([&](Session& current, ThreadState&) {
    note_parameter_name(current, reinterpret_cast<uintptr_t>(tensor_impl), 0, name ? name : "", "", "");
  });
}

}  // extern "C"
