// A machine as the command finds it: a folder to work in and an installation of the probe, both of the test's own.
#pragma once

#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace ampscope::cli::testing {

class World {
 public:
  World();

  /// `ampscope` with these arguments, in the work folder.
  [[nodiscard]] Result ampscope(const std::vector<std::string>& arguments) const;
  /// The same, to be changed before it is started.
  [[nodiscard]] Start start(const std::vector<std::string>& arguments) const;
  /// `ampscope run options… -- fake_trainer settings…`
  [[nodiscard]] Result train(const std::vector<std::string>& options, const std::vector<std::string>& settings) const;
  /// A trace made by such a run.
  void record(const std::string& name, const std::vector<std::string>& settings) const;

  const Folder work;
  const Folder lib;  ///< what AMPSCOPE_LIB_DIR names

 private:
  const Folder temporary_;
};

}  // namespace ampscope::cli::testing
