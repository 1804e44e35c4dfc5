// `ampscope tune` as a process.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/world.h"

namespace ampscope::cli::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class Tune : public ::testing::Test {
 protected:
  /// The scale comes down from 2^20 to 2^11: nine skipped steps of sixty.
  void SetUp() override { world.record("run.ampscope", {"steps=60", "scale=20"}); }
  World world;
};

TEST_F(Tune, ShowsBothSideBySideAndTheLineToPaste) {
  const Result result = world.ampscope({"tune", "run.ampscope"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("recommended: 0 % of the gradient elements would be lost instead of 15 %"));
  EXPECT_THAT(result.output, HasSubstr("today           recommended"));
  EXPECT_THAT(result.output, HasSubstr("starting at 2^10 instead of 2^20: it saves 9 skipped steps"));
  EXPECT_THAT(result.output, HasSubstr("torch.amp.GradScaler(\"cpu\", init_scale=2.0**10)"));
  EXPECT_THAT(result.output, HasSubstr("executor::GradScaler scaler({.init_scale = 0x1p10});"));
  EXPECT_THAT(result.output, Not(HasSubstr("as asked")));
}

TEST_F(Tune, AnswersWhatIf) {
  const Result text = world.ampscope({"tune", "run.ampscope", "--growth-interval", "5", "--init-scale", "2048"});
  EXPECT_THAT(text.output, HasSubstr("as asked"));
  const Result result =
      world.ampscope({"tune", "run.ampscope", "--format", "json", "--growth-interval", "5", "--init-scale", "2048"});
  const json report = json::parse(result.output);
  EXPECT_EQ(report["schema"], "ampscope.tune/1");
  const json& scaler = report["scalers"][0];
  EXPECT_EQ(scaler["actual_skips"], 9);
  EXPECT_EQ(scaler["today"]["skips"], 9);
  EXPECT_EQ(scaler["today"]["final_scale"], 2048);
  EXPECT_EQ(scaler["recommended"]["settings"]["init_scale"], 1024);
  EXPECT_EQ(scaler["asked"]["skips"], 10);  // Five good steps, then one that is skipped, and so on.
  EXPECT_EQ(scaler["asked"]["settings"]["growth_factor"], 2);
  EXPECT_EQ(scaler["choices"].size(), 4U);
  EXPECT_EQ(scaler["kept_back_from_step"], 40);
  EXPECT_TRUE(scaler["no_scale_fits"].is_null());
}

TEST_F(Tune, SaysWhatIsWrong) {
  world.record("plain.ampscope", {});
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& sentence) {
    const Result result = world.ampscope(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.errors, HasSubstr("ampscope tune: "));
    EXPECT_THAT(result.errors, HasSubstr(sentence));
    EXPECT_EQ(result.output, "");
  };
  refused({"tune", "plain.ampscope"}, "plain.ampscope holds no gradient scaler");
  refused({"tune", "missing.ampscope"}, "missing.ampscope");
  refused({"tune", "run.ampscope", "--growth-factor", "1"}, "--growth-factor must be above 1");
  refused({"tune", "run.ampscope", "--backoff-factor", "1.5"}, "--backoff-factor must be between 0 and 1");
  refused({"tune", "run.ampscope", "--init-scale", "0"}, "--init-scale must be a number above 0");
  refused({"tune", "run.ampscope", "--format", "html"}, "html");
}

}  // namespace
}  // namespace ampscope::cli::testing
