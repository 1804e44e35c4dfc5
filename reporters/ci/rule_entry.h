// What the formats for CI services need to know of a rule beside its findings.
#pragma once

#include <string>
#include <vector>

#include "analyzers/core/finding.h"

namespace ampscope::reporters {

struct RuleEntry {
  std::string code;     ///< "AMP202"
  std::string name;     ///< "clip-before-unscale"
  std::string summary;  ///< one sentence
  analyzers::Severity severity = analyzers::Severity::warning;
};

}  // namespace ampscope::reporters
