// `ampscope doctor` against Pythons and installations made for the test.
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/world.h"

namespace ampscope::cli::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Doctor : public ::testing::Test {
 protected:
  /// A Python that answers the doctor's question as one with this torch would.
  void make_python(const std::string& torch) const {
    world.work.write("python", "#!/bin/sh\necho '{\"version\": \"3.11.2\", \"prefix\": \"" + world.work.path() +
                                   "/venv\", \"package\": \"/venv/torch\", \"torch\": \"" + torch + "\"}'\n");
    std::filesystem::permissions(world.work / "python", std::filesystem::perms::owner_all);
  }
  void complete_installation() const {
    world.lib.write("libampscope_preload.so", "");
    world.lib.write("libampscope_probe_torch2.13.so", "");
    world.lib.write("libampscope_probe_torch2.9.so", "");
    world.lib.write("libampscope_probe_torch.so", "");
  }
  Result examine() const { return world.ampscope({"doctor", "--python", "./python"}); }
  World world;
};

TEST_F(Doctor, IsContentWhenARunWouldWork) {
  make_python("2.13.0+cpu");
  complete_installation();
  const Result result = examine();
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("for torch 2.9, 2.13\n"));
  EXPECT_THAT(result.output, HasSubstr("2.13.0+cpu in /venv/torch"));
  EXPECT_THAT(result.output, HasSubstr("ampscope run works here."));
}

TEST_F(Doctor, FindsTheAdapterInTheEnvironmentOfTheTorch) {
  make_python("2.14.1");
  complete_installation();
  EXPECT_EQ(examine().status, 1);
  EXPECT_THAT(examine().output, HasSubstr("there is none for torch 2.14"));
  world.work.write("venv/lib/ampscope/libampscope_probe_torch2.14.so", "");
  EXPECT_EQ(examine().status, 0) << examine().output;
}

TEST_F(Doctor, NamesWhatIsMissingAndWhatToDo) {
  make_python("2.13.0");
  const Result nothing_built = examine();
  EXPECT_EQ(nothing_built.status, 1);
  EXPECT_THAT(nothing_built.output, HasSubstr("libampscope_preload.so is not there"));
  EXPECT_THAT(nothing_built.output, HasSubstr("-DAMPSCOPE_BUILD_PROBE=ON"));
  complete_installation();
  make_python("2.9.1+cu126");
  EXPECT_EQ(examine().status, 1);
  EXPECT_THAT(examine().output, ContainsRegex("torch 2.9.1\\+cu126 is not supported"));
  EXPECT_THAT(examine().output, HasSubstr("pip install torch==2.13.0"));
  world.work.write("python", "#!/bin/sh\necho '{\"version\": \"3.11.2\", \"prefix\": \"/usr\"}'\n");
  EXPECT_EQ(examine().status, 1);
  EXPECT_THAT(examine().output, HasSubstr("this Python has no torch"));
  world.work.write("python", "#!/bin/sh\nexit 1\n");
  EXPECT_THAT(examine().output, HasSubstr("it does not run"));
  std::filesystem::remove(world.work / "python");
  EXPECT_THAT(examine().output, HasSubstr("'./python' is no program"));
}

TEST_F(Doctor, KnowsFoldersThatTheListsCannotName) {
  make_python("2.13.0");
  const auto examine_in = [&](const std::string& name) {
    for (const char* file :
         {"libampscope_preload.so", "libampscope_probe_torch2.13.so", "python/bootstrap/sitecustomize.py"}) {
      world.lib.write(name + "/" + file, "");
    }
    Start start = world.start({"doctor", "--python", "./python"});
    start.environment["AMPSCOPE_LIB_DIR"] = world.lib / name;
    return run(start);
  };
  EXPECT_EQ(examine_in("plain").status, 0);
  EXPECT_EQ(examine_in("with space").status, 1);
  EXPECT_THAT(examine_in("with space").output, HasSubstr("LD_PRELOAD cannot name a folder with a space"));
  EXPECT_THAT(examine_in("with:colon").output, HasSubstr("PYTHONPATH and LD_PRELOAD cannot name"));
}

TEST_F(Doctor, AsksARealPython) {
  Start probe = world.start({});
  probe.command = {"python3", "--version"};
  if (run(probe).status != 0) GTEST_SKIP() << "there is no python3";
  // A package that would tell if it were imported.
  world.work.write("site/torch/__init__.py", "raise SystemExit('imported')\n");
  world.work.write("site/torch/version.py", "__version__ = '2.12.1+cpu'\ncuda: Optional[str] = None\n");
  Start start = world.start({"doctor"});
  start.environment["PYTHONPATH"] = world.work / "site";
  world.lib.write("libampscope_probe_torch2.12.so", "");
  world.lib.write("libampscope_preload.so", "");
  const Result result = run(start);
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("2.12.1+cpu in"));
}

TEST_F(Doctor, TellsWhereSettingsComeFrom) {
  world.work.write("ampscope.toml", "[rules]\nignore = [\"AMP301\", \"AMP304\"]\n");
  Start start = world.start({"doctor"});
  start.environment["AMPSCOPE_LEVEL"] = "grads";
  start.environment["COLUMNS"] = "120";
  const Result result = run(start);
  EXPECT_THAT(result.output, ContainsRegex("run.level +grads +AMPSCOPE_LEVEL\n"));
  EXPECT_THAT(result.output, HasSubstr("ampscope.toml: rules.ignore"));
  EXPECT_THAT(result.output, ContainsRegex("rules.ignore +AMP301,AMP304"));
  EXPECT_THAT(result.output, ContainsRegex("check.fail_on +warning +default\n"));
}

}  // namespace
}  // namespace ampscope::cli::testing
