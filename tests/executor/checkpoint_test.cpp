#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include "executor/training_executor.h"
#include "tests/executor/small_training.h"

namespace ampscope::executor {
namespace {

using ::testing::AllOf;
using testing::Batches;
using ::testing::HasSubstr;
using testing::mean_square;
using testing::Net;
using testing::same_bits;
using testing::snapshot;

/// A training with everything a checkpoint has to keep: dropout and running statistics, a momentum and an Adam
/// optimizer, one schedule each, a scale that moves, windows of several batches over several passes of the data.
struct Training {
  Training(Precision precision, std::uint64_t seed, bool can_seek = false) : batches(7) {
    torch::manual_seed(seed);
    net = std::make_shared<Net>();
    const auto momentum =
        std::make_shared<torch::optim::SGD>(net->first->parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
    std::vector<torch::Tensor> others = net->norm->parameters();
    for (const auto& parameter : net->last->parameters())
      others.push_back(parameter);
    const auto adam = std::make_shared<torch::optim::Adam>(others, torch::optim::AdamOptions(0.01));
    executor = std::make_unique<TrainingExecutor>(Model(net), mean_square,
                                                  std::vector<std::shared_ptr<torch::optim::Optimizer>>{momentum, adam},
                                                  batches.source(can_seek),
                                                  TrainingOptions{.precision = precision,
                                                                  .accumulation = 2,
                                                                  .clipping = NormClipping{.max_norm = 2.0},
                                                                  .scaler = {.init_scale = 1e8, .growth_interval = 3}});
    executor->add_schedule(std::make_unique<TorchSchedule>(std::make_unique<torch::optim::StepLR>(*momentum, 3, 0.5)),
                           0);
    executor->add_schedule(
        std::make_unique<LambdaSchedule>(
            *adam, [](std::int64_t steps) { return 1.0 / (1.0 + 0.1 * static_cast<double>(steps)); }),
        1);
  }

  /// The losses of that many steps; ends of the data in between are passed over.
  std::vector<torch::Tensor> losses(int steps) {
    std::vector<torch::Tensor> losses;
    while (static_cast<int>(losses.size()) < steps) {
      if (auto report = executor->train_step()) losses.push_back(report->loss.clone());
    }
    return losses;
  }

  Batches batches;
  std::shared_ptr<Net> net;
  std::unique_ptr<TrainingExecutor> executor;
};

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::path(::testing::TempDir()) / ("checkpoint_" + std::to_string(::getpid()) + "_" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    path_ = folder_ / "training.pt";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_))
      ++count;
    return count;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

TEST_F(CheckpointTest, AResumedRunIsBitIdenticalToOneThatNeverStopped) {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    // Saved after 0, 5 and 8 steps: at the start, in a pass, and with the end of a pass already seen.
    for (const int saved_after : {0, 5, 8}) {
      Training straight(precision, 1);
      const auto first = straight.losses(saved_after);
      straight.executor->save_checkpoint(path_);
      const auto expected = straight.losses(9);

      Training resumed(precision, 2);
      resumed.executor->load_checkpoint(path_);
      EXPECT_EQ(resumed.executor->progress().steps, saved_after);
      EXPECT_TRUE(same_bits(resumed.losses(9), expected)) << static_cast<int>(precision) << " after " << saved_after;
      EXPECT_TRUE(same_bits(snapshot(*resumed.net), snapshot(*straight.net)));
      EXPECT_EQ(resumed.executor->scaler().state_dict(), straight.executor->scaler().state_dict());
      EXPECT_EQ(resumed.batches.calls(), straight.batches.calls());
      EXPECT_EQ(resumed.executor->progress().steps_taken, straight.executor->progress().steps_taken);
    }
  }
  EXPECT_EQ(files(), 1U);
}

TEST_F(CheckpointTest, TheScaleMovesInTheRunThatIsResumed) {
  // Else the test above would say nothing about the scaler.
  Training training(Precision::fp16, 1);
  training.losses(17);
  EXPECT_LT(training.executor->progress().steps_taken, 17);
  EXPECT_NE(training.executor->scaler().get_scale(), 1e8);
}

TEST_F(CheckpointTest, GoesBackInTheSameProcess) {
  Training training(Precision::fp16, 1, /*can_seek=*/true);
  training.losses(4);
  training.executor->save_checkpoint(path_);
  const auto expected = training.losses(6);
  const auto weights = snapshot(*training.net);
  training.executor->load_checkpoint(path_);
  EXPECT_TRUE(same_bits(training.losses(6), expected));
  EXPECT_TRUE(same_bits(snapshot(*training.net), weights));
}

TEST_F(CheckpointTest, FromBeforeTheFirstStepLeavesNoOptimizerStateBehind) {
  Training training(Precision::fp32, 1, /*can_seek=*/true);
  training.executor->save_checkpoint(path_);
  const auto expected = training.losses(3);
  training.executor->load_checkpoint(path_);
  EXPECT_TRUE(same_bits(training.losses(3), expected));
}

TEST_F(CheckpointTest, NeedsSeekToGoBack) {
  Training training(Precision::fp32, 1);
  training.executor->save_checkpoint(path_);
  training.losses(3);
  const auto weights = snapshot(*training.net);
  EXPECT_THAT([&] { training.executor->load_checkpoint(path_); },
              ::testing::ThrowsMessage<c10::Error>(HasSubstr("Give the data source a seek function")));
  EXPECT_TRUE(same_bits(snapshot(*training.net), weights));
}

TEST_F(CheckpointTest, KeepsParametersOfAModelWithoutAModule) {
  const auto make = [](torch::Tensor& weight) {
    return std::make_unique<TrainingExecutor>(
        Model([weight](const torch::Tensor& input) { return (weight * input).sum(); }),
        [](const torch::Tensor& output, const torch::Tensor&) { return output.square(); },
        std::vector<std::shared_ptr<torch::optim::Optimizer>>{
            std::make_shared<torch::optim::Adam>(std::vector<torch::Tensor>{weight})},
        DataSource{.next = [] { return Batch{.input = torch::ones({2}), .target = {}}; }, .seek = nullptr});
  };
  torch::Tensor saved = torch::ones({2}, torch::requires_grad());
  const auto first = make(saved);
  first->train(3);
  first->save_checkpoint(path_);
  torch::Tensor loaded = torch::zeros({2}, torch::requires_grad());
  const auto second = make(loaded);
  second->load_checkpoint(path_);
  EXPECT_TRUE(torch::equal(saved, loaded));
  first->train(2);
  second->train(2);
  EXPECT_TRUE(torch::equal(saved, loaded));
}

TEST_F(CheckpointTest, RefusesWithAReasonAndChangesNothing) {
  Training training(Precision::fp16, 1);
  training.losses(2);
  training.executor->save_checkpoint(path_);
  Training other(Precision::fp16, 2);
  other.losses(1);
  const auto weights = snapshot(*other.net);
  const auto state = other.executor->scaler().state_dict();
  const auto refuses = [&](const std::filesystem::path& path, const std::string& why) {
    EXPECT_THAT([&] { other.executor->load_checkpoint(path); },
                ::testing::ThrowsMessage<c10::Error>(AllOf(HasSubstr(path.filename().string()), HasSubstr(why))));
    EXPECT_TRUE(same_bits(snapshot(*other.net), weights));
    EXPECT_EQ(other.executor->scaler().state_dict(), state);
    EXPECT_EQ(other.executor->progress().steps, 1);
  };

  refuses(folder_ / "missing.pt", "No such file");
  std::ofstream(folder_ / "text.pt") << "this is no archive";
  refuses(folder_ / "text.pt", "cannot be read");
  const auto size = std::filesystem::file_size(path_);
  for (const auto cut : {size / 2, size - 1}) {
    const auto path = folder_ / "cut.pt";
    std::filesystem::copy_file(path_, path, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(path, cut);
    refuses(path, "cannot be read");
  }
  torch::save(torch::ones({2}), folder_ / "tensor.pt");
  refuses(folder_ / "tensor.pt", "not written by save_checkpoint");

  Training in_fp32(Precision::fp32, 1);
  in_fp32.executor->save_checkpoint(folder_ / "fp32.pt");
  refuses(folder_ / "fp32.pt", "it has no gradient scaler where this one has gradient scaler");

  const auto wide = std::make_shared<torch::nn::LinearImpl>(4, 3);
  Batches batches(1);
  TrainingExecutor another(Model(wide), mean_square, {std::make_shared<torch::optim::SGD>(wide->parameters(), 0.1)},
                           batches.source());
  another.save_checkpoint(folder_ / "wide.pt");
  refuses(folder_ / "wide.pt", "another training: it has parameter weight");
}

TEST_F(CheckpointTest, AFailedSaveLeavesTheOldFileAndNoOther) {
  Training training(Precision::fp32, 1);
  training.executor->save_checkpoint(path_);
  const auto expected = training.losses(3);
  EXPECT_THAT([&] { training.executor->save_checkpoint(folder_ / "no such folder" / "training.pt"); },
              ::testing::ThrowsMessage<c10::Error>(HasSubstr("No such file or directory")));

  // A full disk, as far as a process can have one for itself alone.
  const auto previous_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  const rlimit limited{.rlim_cur = 2000, .rlim_max = unlimited.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
  std::string message;
  try {
    training.executor->save_checkpoint(path_);
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  }
  ::setrlimit(RLIMIT_FSIZE, &unlimited);
  std::signal(SIGXFSZ, previous_handler);

  EXPECT_THAT(message, HasSubstr("could not be written: File too large"));
  EXPECT_EQ(files(), 1U);
  Training resumed(Precision::fp32, 2);
  resumed.executor->load_checkpoint(path_);
  EXPECT_TRUE(same_bits(resumed.losses(3), expected));
}

}  // namespace
}  // namespace ampscope::executor
