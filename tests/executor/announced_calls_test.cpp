#include "executor/announced_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "executor/grad_scaler.h"
#include "tests/executor/observed_ranges.h"

namespace ampscope::executor {
namespace {

using ::testing::ElementsAre;
using testing::ObservedRanges;

/// An optimizer of the user's own, in a namespace and a template as such classes are.
template <typename Scalar>
class SignDescent : public torch::optim::SGD {
 public:
  using SGD::SGD;
};

torch::Tensor parameter_with_gradient() {
  torch::Tensor parameter = torch::ones({2}, torch::requires_grad());
  parameter.mutable_grad() = torch::full({2}, 3.0);
  return parameter;
}

TEST(AnnouncedCalls, NamesClassesWithoutNamespacesAndTemplateArguments) {
  const std::vector<torch::Tensor> parameters{parameter_with_gradient()};
  EXPECT_EQ(class_name(torch::optim::AdamW(parameters)), "AdamW");
  EXPECT_EQ(class_name(SignDescent<std::vector<int>>(parameters, torch::optim::SGDOptions(0.1))), "SignDescent");
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.1));
  EXPECT_EQ(class_name(torch::optim::StepLR(optimizer, 1)), "StepLR");
}

TEST(AnnouncedCalls, OpenTheRangesOfPythonAndDoTheCall) {
  const torch::Tensor parameter = parameter_with_gradient();
  torch::optim::SGD optimizer({parameter}, torch::optim::SGDOptions(0.5));
  torch::optim::StepLR scheduler(optimizer, 1, 0.1);
  const ObservedRanges ranges;

  EXPECT_NEAR(clip_grad_norm_({parameter}, 1.0), std::sqrt(18.0), 1e-5);
  clip_grad_value_({parameter}, 0.5);
  EXPECT_TRUE(torch::equal(parameter.grad(), torch::full({2}, 0.5)));
  optimizer_step(optimizer);
  EXPECT_TRUE(torch::equal(parameter, torch::full({2}, 0.75)));
  scheduler_step(scheduler);  // LibTorch's schedulers leave the rates alone in their first step
  scheduler_step(scheduler);
  EXPECT_NEAR(optimizer.param_groups()[0].options().get_lr(), 0.05, 1e-15);
  zero_grad(optimizer);
  EXPECT_FALSE(parameter.grad().defined());

  EXPECT_THAT(ObservedRanges::names(), ElementsAre("clip_grad_norm_", "clip_grad_value_", "Optimizer.step#SGD.step",
                                                   "LRScheduler.step#StepLR.step", "LRScheduler.step#StepLR.step",
                                                   "Optimizer.zero_grad#SGD.zero_grad"));
}

TEST(AnnouncedCalls, OptimizerStepPassesAClosureOn) {
  torch::Tensor parameter = torch::ones({1}, torch::requires_grad());
  torch::optim::LBFGS optimizer({parameter}, torch::optim::LBFGSOptions(1.0).max_iter(5));
  const torch::Tensor loss = optimizer_step(optimizer, [&] {
    optimizer.zero_grad();
    torch::Tensor value = (parameter - 3).square().sum();
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item<float>(), 4.0F);
  EXPECT_NEAR(parameter.item<float>(), 3.0F, 1e-4F);
}

TEST(AnnouncedCalls, ScalerOpensItsRangesOnlyWhenEnabled) {
  torch::Tensor parameter = torch::ones({2}, torch::requires_grad());
  torch::optim::SGD optimizer({parameter}, torch::optim::SGDOptions(0.5));
  const auto iterate = [&](GradScaler& scaler) {
    optimizer.zero_grad();
    scaler.scale(parameter.sum()).backward();
    scaler.step(optimizer);
    scaler.update();
  };
  GradScaler enabled(torch::kCPU);
  {
    const ObservedRanges ranges;
    iterate(enabled);
    EXPECT_THAT(ObservedRanges::names(),
                ElementsAre("GradScaler.scale", ".GradScaler.make_scale", "GradScaler.step", ".GradScaler.unscale_",
                            ".Optimizer.step#SGD.step", "GradScaler.update"));
  }
  GradScaler disabled(torch::kCPU, {.enabled = false});
  const ObservedRanges ranges;
  iterate(disabled);
  EXPECT_THAT(ObservedRanges::names(), ElementsAre("Optimizer.step#SGD.step"));
}

TEST(AnnouncedCalls, ScalerForCudaWithoutCudaIsDisabled) {
  if (torch::cuda::is_available()) GTEST_SKIP() << "there is a CUDA device";
  const GradScaler scaler;
  EXPECT_FALSE(scaler.is_enabled());
  EXPECT_EQ(scaler.get_scale(), 1.0);
}

}  // namespace
}  // namespace ampscope::executor
