// A C++ model: in a shared library of its own, for programs that load libtorch late, and linked into model_program.
#include <cstdio>
#include <string>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

namespace {

struct Model : torch::nn::Module {
  Model() : linear(register_module("linear", torch::nn::Linear(3, 2))) {
    // Longer than what a std::string holds in itself, and one with its value at the caller's temporary.
    gain = register_parameter("a_gain_with_a_name_that_does_not_fit_into_a_short_string", torch::ones({2}));
    offset = register_parameter("offset", torch::zeros({2}), /*requires_grad=*/false);
  }
  torch::nn::Linear linear;
  torch::Tensor gain;
  torch::Tensor offset;
};

// Made before main, when nothing may be attached yet.
torch::nn::Linear early(1, 1);

}  // namespace

/// Makes a model, looks at it in every way that the stub stands before, and prints what it saw.
extern "C" __attribute__((visibility("default"))) int use_model() {
  std::printf("early %zu\n", early->parameters().size());
  Model model;
  std::printf("model %p\n", static_cast<void*>(&model));
  std::printf("gain %p %d offset %d\n", static_cast<void*>(model.gain.unsafeGetTensorImpl()),
              model.gain.requires_grad(), model.offset.requires_grad());
  std::printf("parameters %zu own %zu\n", model.parameters().size(), model.parameters(/*recurse=*/false).size());
  for (const auto& item : model.named_parameters())
    std::printf("%s\n", item.key().c_str());
  try {
    model.register_parameter("a.dot", torch::ones({1}));
    return 1;
  } catch (const c10::Error&) {
    std::printf("refused\n");
  }
  const auto sum = (model.gain * 2).sum();
  sum.backward();
  std::printf("gradient %g\n", model.gain.grad()[0].item<double>());
  return 0;
}
