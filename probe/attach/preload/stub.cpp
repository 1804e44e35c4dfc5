// What `ampscope run` puts first into LD_PRELOAD. It is loaded into every process of a run, so it does nothing in those
// that have no libtorch, and it is linked against nothing but the C library.
//
// It stands before these functions:
//   __libc_start_main                       to attach after all shared libraries are set up and before main. Not in a
//                                           constructor: libtorch's own may not have run then.
//   torch::nn::Module::register_parameter   to learn the names of parameters, and to attach in programs that load
//                                           libtorch with dlopen after they have started.
//   torch::nn::Module::parameters           to learn which module is the model.
//   step of torch::optim's optimizers and schedules, Optimizer::zero_grad
//                                           to know when they are called: LibTorch opens no range for them. Those that
//                                           are virtual are reached through their class's table, whose entries are
//                                           looked up by name as well.
// dlopen is not interposed: glibc takes the caller's search path (RUNPATH) from the return address, which would be
// ours.

#include <atomic>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ampscope/interposed.h"
#include "ampscope/probe_c.h"
#include "probe/attach/preload/libtorch.h"
#include "probe/attach/preload/notice.h"
#include "probe/attach/preload/python.h"

namespace ampscope::attach {
namespace {

struct Adapter {
  decltype(&ampscope_cxx_register_parameter) register_parameter;
  decltype(&ampscope_cxx_module_parameters) module_parameters;
  decltype(&ampscope_cxx_optimizer_step) optimizer_step;
  decltype(&ampscope_cxx_zero_grad) zero_grad;
  decltype(&ampscope_cxx_schedule_step) schedule_step;
  decltype(&ampscope_cxx_schedule_step_by_metric) schedule_step_by_metric;
};

enum class State { untried, trying, on, off };

// Plain data that is valid before any constructor has run.
std::atomic<State> state{State::untried};
Adapter adapter;

bool is_wanted() {
  const char* output = getenv("AMPSCOPE_OUTPUT");
  return output && *output;
}

/// The folder of the adapters: named by `ampscope run`, else where this library lies.
bool library_folder(char* folder) {
  const char* named = getenv("AMPSCOPE_LIB_DIR");
  if (named && *named && strlen(named) < path_size) {
    memcpy(folder, named, strlen(named) + 1);
    return true;
  }
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&library_folder), &self) == 0 || !self.dli_fname) return false;
  const char* slash = strrchr(self.dli_fname, '/');
  if (!slash || static_cast<unsigned long>(slash - self.dli_fname) >= path_size) return false;
  memcpy(folder, self.dli_fname, static_cast<unsigned long>(slash - self.dli_fname));
  folder[slash - self.dli_fname] = '\0';
  return true;
}

template <typename Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool load_adapter(const char* libtorch) {
  char folder[path_size];
  char path[path_size + 64];
  char sentence[2 * path_size + 256];
  int major = 0;
  int minor = 0;
  if (!library_folder(folder)) {
    report_failure("the folder of the adapters is not known; start the program with `ampscope run`");
    return false;
  }
  if (!libtorch_version(libtorch, major, minor) || major != 2 || minor < 11 || minor > 15) {
    snprintf(sentence, sizeof sentence, "%s is no torch 2.11 to 2.15, which are supported", libtorch);
    report_failure(sentence);
    return false;
  }
  snprintf(path, sizeof path, "%s/libampscope_probe_torch%d.%d.so", folder, major, minor);
  if (access(path, R_OK) != 0) {
    snprintf(sentence, sizeof sentence,
             "there is no adapter for torch %d.%d in %s; build ampscope with -DAMPSCOPE_TORCH_DIR=<this torch>", major,
             minor, folder);
    report_failure(sentence);
    return false;
  }
  // NOLINTNEXTLINE(clang-analyzer-optin.taint.GenericTaint): whoever sets our environment sets LD_PRELOAD as well
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    snprintf(sentence, sizeof sentence, "the adapter does not load (%s); build ampscope again with this torch",
             reason ? reason : path);
    report_failure(sentence);
    return false;
  }
  decltype(&ampscope_abi_version) abi_version = nullptr;
  decltype(&ampscope_attach) attach = nullptr;
  decltype(&ampscope_last_error) last_error = nullptr;
  if (!look_up(library, "ampscope_abi_version", abi_version) || abi_version() != AMPSCOPE_ABI_VERSION ||
      !look_up(library, "ampscope_attach", attach) || !look_up(library, "ampscope_last_error", last_error) ||
      !look_up(library, "ampscope_cxx_register_parameter", adapter.register_parameter) ||
      !look_up(library, "ampscope_cxx_module_parameters", adapter.module_parameters) ||
      !look_up(library, "ampscope_cxx_optimizer_step", adapter.optimizer_step) ||
      !look_up(library, "ampscope_cxx_zero_grad", adapter.zero_grad) ||
      !look_up(library, "ampscope_cxx_schedule_step", adapter.schedule_step) ||
      !look_up(library, "ampscope_cxx_schedule_step_by_metric", adapter.schedule_step_by_metric)) {
    snprintf(sentence, sizeof sentence, "%s is of another release; build and install ampscope as one", path);
    report_failure(sentence);
    return false;
  }
  if (attach() != 0) {
    report_failure(last_error());
    return false;
  }
  return true;
}

/// Attaches if libtorch is there; tried until it is, and then once.
void attach_if_libtorch() {
  if (state.load(std::memory_order_acquire) != State::untried || !is_wanted()) return;
  char libtorch[path_size];
  if (!find_libtorch(libtorch)) return;
  State expected = State::untried;
  if (!state.compare_exchange_strong(expected, State::trying)) return;
  const int saved_errno = errno;
  const bool loaded = load_adapter(libtorch);
  errno = saved_errno;
  state.store(loaded ? State::on : State::off, std::memory_order_release);
}

bool is_on() {
  return state.load(std::memory_order_acquire) == State::on;
}

/// The function that stands behind one of ours. Whoever called ours was linked against it, so it is somewhere.
template <typename Function>
Function forward_to(std::atomic<Function>& cache, const char* symbol) {
  Function real = cache.load(std::memory_order_acquire);
  if (!real) {
    real = reinterpret_cast<Function>(real_symbol(symbol));
    if (!real) {
      report_failure("a function of libtorch that the program calls is in no library");
      abort();
    }
    cache.store(real, std::memory_order_release);
  }
  return real;
}

using Main = int (*)(int, char**, char**);
Main program_main;

int main_after_attaching(int argument_count, char** arguments, char** environment) {
  attach_if_libtorch();
  char folder[path_size];
  if (library_folder(folder)) attach_to_isolated_python(argument_count, arguments, folder);
  dlerror();  // look-ups that found nothing leave a message behind
  return program_main(argument_count, arguments, environment);
}

// The functions of torch::nn::Module by the Itanium C++ ABI: std::string and at::Tensor are not trivial, so a by-value
// argument is the address of the caller's temporary; a reference is an address.
#define REGISTER_PARAMETER \
  "_ZN5torch2nn6Module18register_parameterENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN2at6TensorEb"
#define PARAMETERS "_ZNK5torch2nn6Module10parametersEb"

// A std::vector<at::Tensor> to the calling convention: not trivial, so returned through a hidden address (in a register
// of its own on some machines, which is why this is a type and not one more argument). Never made or destroyed here.
struct TensorVector {
  void* words[3];
  ~TensorVector();
};

using RegisterParameter = void* (*)(void* module, void* name, void* tensor, bool requires_grad);
using Parameters = TensorVector (*)(const void* module, bool recurse);

std::atomic<RegisterParameter> real_register_parameter;
std::atomic<Parameters> real_parameters;

}  // namespace
}  // namespace ampscope::attach

namespace attach = ampscope::attach;

extern "C" {

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): standing before it is the point
AMPSCOPE_API int __libc_start_main(attach::Main program_main, int argument_count, char** arguments, void (*init)(),
                                   void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  using StartMain = int (*)(attach::Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  auto* start = reinterpret_cast<StartMain>(dlsym(RTLD_NEXT, "__libc_start_main"));
  if (attach::is_wanted()) {
    attach::program_main = program_main;
    program_main = attach::main_after_attaching;
  }
  return start(program_main, argument_count, arguments, init, fini, rtld_fini, stack_end);
}

AMPSCOPE_API void* ampscope_register_parameter(void* module, void* name, void* tensor,
                                               bool requires_grad) __asm__(REGISTER_PARAMETER);
AMPSCOPE_API attach::TensorVector ampscope_parameters(const void* module, bool recurse) __asm__(PARAMETERS);

void* ampscope_register_parameter(void* module, void* name, void* tensor, bool requires_grad) {
  auto* real = attach::forward_to(attach::real_register_parameter, REGISTER_PARAMETER);
  attach::attach_if_libtorch();
  if (!attach::is_on()) return real(module, name, tensor, requires_grad);
  // libtorch moves out of the name. A std::string begins with the address of its characters.
  char* copy = strdup(*static_cast<const char**>(name));
  void* registered = real(module, name, tensor, requires_grad);
  // at::Tensor& → the address of a Tensor, which is the address of its TensorImpl and nothing else.
  if (copy) attach::adapter.register_parameter(module, copy, *static_cast<void**>(registered));
  free(copy);
  return registered;
}

attach::TensorVector ampscope_parameters(const void* module, bool recurse) {
  auto* real = attach::forward_to(attach::real_parameters, PARAMETERS);
  // Asked with recurse, it is somebody making an optimizer of a whole (sub)model.
  if (recurse && attach::is_on()) attach::adapter.module_parameters(const_cast<void*>(module));
  return real(module, recurse);
}

// Each optimizer has a step of its own. The number is the length of the class's name.
#define STEP_OF(length, name) "_ZN5torch5optim" #length #name "4stepESt8functionIFN2at6TensorEvEE"
#define AMPSCOPE_OPTIMIZER(length, name)                                                                          \
  AMPSCOPE_API ampscope::ReturnedTensor ampscope_step_of_##name(void* optimizer,                                  \
                                                                void* closure) __asm__(STEP_OF(length, name));    \
  ampscope::ReturnedTensor ampscope_step_of_##name(void* optimizer, void* closure) {                              \
    static std::atomic<ampscope::OptimizerStep> cache;                                                            \
    auto* real = attach::forward_to(cache, STEP_OF(length, name));                                                \
    return attach::is_on() ? attach::adapter.optimizer_step(real, optimizer, closure) : real(optimizer, closure); \
  }

AMPSCOPE_OPTIMIZER(7, Adagrad)
AMPSCOPE_OPTIMIZER(4, Adam)
AMPSCOPE_OPTIMIZER(5, AdamW)
AMPSCOPE_OPTIMIZER(5, LBFGS)
AMPSCOPE_OPTIMIZER(7, RMSprop)
AMPSCOPE_OPTIMIZER(3, SGD)

#define ZERO_GRAD "_ZN5torch5optim9Optimizer9zero_gradEb"
#define SCHEDULE_STEP "_ZN5torch5optim11LRScheduler4stepEv"
#define SCHEDULE_STEP_BY_METRIC "_ZN5torch5optim26ReduceLROnPlateauScheduler4stepEf"

AMPSCOPE_API void ampscope_zero_grad(void* optimizer, bool set_to_none) __asm__(ZERO_GRAD);
AMPSCOPE_API void ampscope_schedule_step(void* schedule) __asm__(SCHEDULE_STEP);
AMPSCOPE_API void ampscope_schedule_step_by_metric(void* schedule, float metric) __asm__(SCHEDULE_STEP_BY_METRIC);

void ampscope_zero_grad(void* optimizer, bool set_to_none) {
  static std::atomic<ampscope::ZeroGrad> cache;
  auto* real = attach::forward_to(cache, ZERO_GRAD);
  if (attach::is_on()) return attach::adapter.zero_grad(real, optimizer, set_to_none);
  real(optimizer, set_to_none);
}

void ampscope_schedule_step(void* schedule) {
  static std::atomic<ampscope::ScheduleStep> cache;
  auto* real = attach::forward_to(cache, SCHEDULE_STEP);
  if (attach::is_on()) return attach::adapter.schedule_step(real, schedule);
  real(schedule);
}

void ampscope_schedule_step_by_metric(void* schedule, float metric) {
  static std::atomic<ampscope::ScheduleStepByMetric> cache;
  auto* real = attach::forward_to(cache, SCHEDULE_STEP_BY_METRIC);
  if (attach::is_on()) return attach::adapter.schedule_step_by_metric(real, schedule, metric);
  real(schedule, metric);
}

}  // extern "C"
