#include "executor/autocast.h"

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

namespace ampscope::executor {
namespace {

bool is_on() {
  return at::autocast::is_autocast_enabled(at::kCPU);
}
c10::ScalarType dtype() {
  return at::autocast::get_autocast_dtype(at::kCPU);
}

/// The dtype in which a matrix product runs here.
c10::ScalarType product_dtype() {
  return torch::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type();
}

TEST(Autocast, RunsMatrixProductsInTheLowerPrecision) {
  EXPECT_EQ(product_dtype(), torch::kFloat);
  {
    const Autocast half(torch::kCPU, torch::kHalf);
    EXPECT_TRUE(half.enabled());
    EXPECT_EQ(product_dtype(), torch::kHalf);
  }
  {
    const Autocast by_default(torch::kCPU);
    EXPECT_EQ(by_default.dtype(), torch::kBFloat16);
    EXPECT_EQ(product_dtype(), torch::kBFloat16);
  }
  EXPECT_EQ(product_dtype(), torch::kFloat);
}

TEST(Autocast, NestsAndRestoresEachLevel) {
  const c10::ScalarType outside = dtype();
  {
    const Autocast outer(torch::kCPU, torch::kHalf);
    {
      const Autocast off(torch::kCPU, {.dtype = std::nullopt, .enabled = false, .cache_enabled = std::nullopt});
      EXPECT_EQ(product_dtype(), torch::kFloat);
      {
        const Autocast inner(torch::kCPU, torch::kBFloat16);
        EXPECT_EQ(product_dtype(), torch::kBFloat16);
      }
      EXPECT_FALSE(is_on());
    }
    EXPECT_EQ(product_dtype(), torch::kHalf);
  }
  EXPECT_FALSE(is_on());
  EXPECT_EQ(dtype(), outside);
}

TEST(Autocast, RestoresEverythingWhenAnExceptionLeavesTheBlock) {
  const c10::ScalarType outside = dtype();
  const auto fail_inside = [] {
    const Autocast outer(torch::kCPU, {.dtype = torch::kHalf, .enabled = true, .cache_enabled = false});
    const Autocast inner(torch::kCPU, torch::kBFloat16);
    throw std::runtime_error("the model failed");
  };
  EXPECT_THROW(fail_inside(), std::runtime_error);
  EXPECT_FALSE(is_on());
  EXPECT_EQ(dtype(), outside);
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
  // The nesting level is back at 0 as well: the next guard is the outermost one and says so when it ends.
  EXPECT_EQ(at::autocast::increment_nesting(), 1);
  EXPECT_EQ(at::autocast::decrement_nesting(), 0);
}

TEST(Autocast, CastsAWeightOnceUntilTheOutermostGuardEnds) {
  torch::Tensor weight = torch::ones({2, 2}, torch::requires_grad());
  const auto product = [&] { return torch::mm(torch::ones({2, 2}), weight)[0][0].item<float>(); };
  {
    const Autocast outer(torch::kCPU, torch::kHalf);
    {
      const Autocast inner(torch::kCPU, torch::kHalf);
      EXPECT_EQ(product(), 2.0F);
    }
    // A change behind autograd's back shows whether the cached cast is used: it was kept although the inner guard
    // ended.
    weight.data().fill_(5.0);
    EXPECT_EQ(product(), 2.0F);
    const Autocast without_cache(torch::kCPU, {.dtype = torch::kHalf, .enabled = true, .cache_enabled = false});
    EXPECT_EQ(product(), 10.0F);
  }
  const Autocast next(torch::kCPU, torch::kHalf);
  EXPECT_EQ(product(), 10.0F);
}

TEST(Autocast, IsOffForADtypeItHasNoKernelsFor) {
  const Autocast autocast(torch::kCPU, torch::kDouble);
  EXPECT_FALSE(autocast.enabled());
  EXPECT_EQ(product_dtype(), torch::kFloat);
}

TEST(Autocast, IsOffForCudaWithoutCuda) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_FALSE(Autocast(torch::kCUDA, torch::kHalf).enabled());
}

TEST(Autocast, RefusesADeviceTypeWithoutAutocast) {
  EXPECT_THROW(Autocast(torch::kMeta, torch::kHalf), c10::Error);
}

}  // namespace
}  // namespace ampscope::executor
