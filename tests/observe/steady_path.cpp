// Counts what the probe does to a training thread once it knows the program: it may allocate nothing, and where it is
// not wanted it may not be called. The reference is the same loop with a callback that does nothing, because torch
// itself allocates what it hands to callbacks.
//
//   steady_path <adapter> <level|budget> <trace>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <dlfcn.h>
#include <unistd.h>

// glibc's own names for what is replaced below.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* memory, std::size_t size);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace {
thread_local long allocations = 0;
}

extern "C" void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
extern "C" void* calloc(std::size_t count, std::size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}
extern "C" void* realloc(void* memory, std::size_t size) {
  ++allocations;
  return __libc_realloc(memory, size);
}

namespace {

std::unique_ptr<at::ObserverContext> nothing(const at::RecordFunction&) {
  return nullptr;
}
void nothing_more(const at::RecordFunction&, at::ObserverContext*) {}

/// Two layers in bf16 autocast, a loss scale, unscaling, an optimizer and an update, in torch's own operators.
class Training {
 public:
  Training() {
    at::manual_seed(0);
    for (const auto& [rows, columns] : {std::pair{32, 16}, std::pair{4, 32}}) {
      parameters_.push_back((at::randn({rows, columns}) * 0.1).requires_grad_());
      parameters_.push_back(at::zeros({rows}).requires_grad_());
    }
  }

  void step() {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    const at::Tensor hidden = at::relu(at::linear(input_, parameters_[0], parameters_[1]));
    const at::Tensor loss = at::mse_loss(at::linear(hidden, parameters_[2], parameters_[3]).to(at::kFloat), target_);
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    (loss * scale_).backward();
    const at::NoGradGuard without_graph;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : parameters_)
      gradients.push_back(parameter.grad());
    at::Tensor found_inf = at::zeros({1});
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, scale_.reciprocal());
    {
      RECORD_USER_SCOPE("Optimizer.step#SGD.step");
      for (const at::Tensor& parameter : parameters_)
        parameter.add_(parameter.grad(), -0.01);
    }
    at::_amp_update_scale_(scale_, tracker_, found_inf, 2.0, 0.5, 2000);
    RECORD_USER_SCOPE("Optimizer.zero_grad#SGD.zero_grad");
    for (const at::Tensor& parameter : parameters_)
      parameter.mutable_grad().reset();
  }

  void train(int steps) {
    for (int i = 0; i < steps; ++i)
      step();
  }

 private:
  std::vector<at::Tensor> parameters_;
  at::Tensor input_ = at::randn({8, 16});
  at::Tensor target_ = at::randn({8, 4});
  at::Tensor scale_ = at::full({1}, 1024.0F);
  at::Tensor tracker_ = at::zeros({1}, at::kInt);
};

// Steps that are counted: neither the first, nor those in which sites are looked up whatever is predicted.
constexpr int warm = 70;
constexpr int counted = 50;

template <typename Function>
Function find(void* library, const char* name) {
  auto* const found = reinterpret_cast<Function>(dlsym(library, name));
  if (!found) {
    std::fprintf(stderr, "%s is not in the adapter\n", name);
    std::exit(2);
  }
  return found;
}

}  // namespace

/// Allocations of this thread in the counted steps. By this name instructions.py finds them.
extern "C" __attribute__((noinline)) long counted_steps(void* training) {
  const long before = allocations;
  static_cast<Training*>(training)->train(counted);
  return allocations - before;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const std::string level = words[2];
  at::set_num_threads(1);
  Training training;
  training.train(warm);
  const long without = counted_steps(&training);

  const auto callback = [](at::RecordScope scope) {
    return at::addGlobalCallback(
        at::RecordFunctionCallback(nothing, nothing_more).needsInputs(true).needsOutputs(true).scopes({scope}));
  };
  std::vector<at::CallbackHandle> handles;
  for (const at::RecordScope scope :
       {at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}) {
    handles.push_back(callback(scope));
  }
  training.train(warm);
  const long with_nothing = counted_steps(&training);
  for (const at::CallbackHandle handle : handles)
    at::removeCallback(handle);

  ::unlink(words[3]);
  ::setenv("AMPSCOPE_OUTPUT", words[3], 1);
  ::setenv("AMPSCOPE_LEVEL", level == "budget" ? "auto" : level.c_str(), 1);
  if (level == "budget") ::setenv("AMPSCOPE_BUDGET", "2", 1);
  void* const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  if (find<int (*)()>(library, "ampscope_attach")() != 0) {
    std::fprintf(stderr, "%s\n", find<const char* (*)()>(library, "ampscope_last_error")());
    return 2;
  }
  training.train(warm);
  const long with_probe = counted_steps(&training);
  find<void (*)(const char*, const char*)>(library, "ampscope_detach")("detach", "");
  training.train(warm);
  const long detached = counted_steps(&training);

  std::printf("allocations in %d steps: %ld alone, %ld with an empty callback, %ld with the probe, %ld after it\n",
              counted, without, with_nothing, with_probe, detached);
  int wrong = 0;
  if (with_nothing <= without) {
    std::printf("the reference shows nothing: an empty callback ought to make torch allocate its arguments\n");
    wrong = 1;
  }
  if (with_probe > with_nothing) {
    std::printf("the probe allocates on the steady path\n");
    wrong = 1;
  }
  // What torch allocates for callbacks shows whether it calls any.
  if (detached > without) {
    std::printf("callbacks go on after observation has ended\n");
    wrong = 1;
  }
  return wrong;
}
