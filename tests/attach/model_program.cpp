// A C++ program that is linked to libtorch and makes one module before main.
#include <cstdio>

#include <torch/nn/modules/linear.h>

extern "C" int use_model();

namespace {
torch::nn::Linear early(1, 1);
}

int main() {
  std::printf("early %zu\n", early->parameters().size());
  return use_model();
}
