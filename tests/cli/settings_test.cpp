#include "cli/settings/settings.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/app/error.h"
#include "tests/cli/process.h"

namespace ampscope::cli {
namespace {

using ::testing::HasSubstr;

class SettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const SettingSpec& spec : setting_specs())
      unsetenv(spec.environment);
    unsetenv("AMPSCOPE_RUN_ID");
  }
  void TearDown() override { SetUp(); }
  std::string message() const {
    try {
      (void)Settings::load(folder.path());
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }
  testing::Folder folder;
};

TEST_F(SettingsTest, FlagBeforeEnvironmentBeforeFileBeforeDefault) {
  EXPECT_EQ(Settings::load(folder.path()).get("run.level").text, "auto");
  folder.write("ampscope.toml", "[run]\nlevel = \"grads\"\n");
  folder.write("a/b/keep", "");
  const Settings settings = Settings::load(folder / "a/b");  // of a parent folder
  EXPECT_EQ(settings.get("run.level").text, "grads");
  EXPECT_EQ(settings.get("run.level").origin, folder / "ampscope.toml: run.level");
  setenv("AMPSCOPE_LEVEL", "ops", 1);
  EXPECT_EQ(settings.get("run.level").text, "ops");
  EXPECT_EQ(settings.get("run.level").origin, "AMPSCOPE_LEVEL");
  EXPECT_EQ(settings.get("run.level", "full").text, "full");
  EXPECT_EQ(settings.get("run.level", "full").origin, "--level");
  setenv("AMPSCOPE_LEVEL", "", 1);
  EXPECT_EQ(settings.get("run.level").text, "grads");
}

TEST_F(SettingsTest, TheNearestFileWins) {
  folder.write("ampscope.toml", "[run]\nlevel = \"grads\"\n");
  folder.write("a/ampscope.toml", "[report]\nformat = \"json\"\n");
  const Settings settings = Settings::load(folder / "a");
  EXPECT_EQ(settings.get("run.level").text, "auto");
  EXPECT_EQ(settings.get("report.format").text, "json");
}

TEST_F(SettingsTest, ReadsEveryKindOfValue) {
  folder.write("ampscope.toml",
               "[run]\ncheck = true\nbudget = 2.5\nhtml = \"out/run.html\"\n"
               "[rules]\nselect = [\"AMP2\", \"AMP3\"]\n[rules.AMP302]\nmin_skips = 6\n");
  const Settings settings = Settings::load(folder.path());
  EXPECT_EQ(settings.get("run.check").text, "true");
  EXPECT_EQ(settings.get("run.budget").text, "2.5");
  EXPECT_EQ(settings.get("run.html").text, folder / "out/run.html");  // beside the file, not beside the user
  EXPECT_EQ(settings.get("rules.select").text, "AMP2,AMP3");
  EXPECT_EQ(settings.rule_parameters().at("AMP302").at("min_skips"), 6);
}

TEST_F(SettingsTest, SaysWhereAMistakeIs) {
  folder.write("ampscope.toml", "[run]\n\noutptu = \"x\"\n");
  EXPECT_EQ(message(), folder / "ampscope.toml:3: there is no setting 'run.outptu'; did you mean 'run.output'?");
  folder.write("ampscope.toml", "level = \"ops\"\n");
  EXPECT_THAT(message(), HasSubstr("ampscope.toml:1: 'level' stands in no table"));
  folder.write("ampscope.toml", "[run\n");
  EXPECT_THAT(message(), HasSubstr("ampscope.toml:1: "));
  folder.write("ampscope.toml", "[run]\nlevel = 2026-01-01\n");
  EXPECT_THAT(message(), HasSubstr("ampscope.toml:2: run.level must be"));
  folder.write("ampscope.toml", "[rules.AMP302]\nmin_skips = \"six\"\n");
  EXPECT_THAT(message(), HasSubstr("ampscope.toml:2: rules.AMP302.min_skips must be a number"));
}

TEST_F(SettingsTest, WithinARunItsVariablesAreNotTheUsers) {
  setenv("AMPSCOPE_OUTPUT", "/of/the/outer/run.ampscope", 1);
  setenv("AMPSCOPE_FORMAT", "json", 1);
  const Settings settings = Settings::load(folder.path());
  EXPECT_EQ(settings.get("run.output").text, "/of/the/outer/run.ampscope");
  setenv("AMPSCOPE_RUN_ID", "1", 1);
  EXPECT_EQ(settings.get("run.output").text, "run.ampscope");
  EXPECT_EQ(settings.get("report.format").text, "json");
}

}  // namespace
}  // namespace ampscope::cli
