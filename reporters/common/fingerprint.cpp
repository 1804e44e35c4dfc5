#include "reporters/common/fingerprint.h"

#include <cstdint>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "reporters/common/place.h"

namespace ampscope::reporters {
namespace {

/// FNV-1a, 64 bits (Fowler, Noll, Vo): fixed for ever, which std::hash is not.
class Fnv1a {
 public:
  void add(std::string_view text) {
    for (const char c : text)
      mix(static_cast<unsigned char>(c));
    mix(0);  // so that "ab","c" differs from "a","bc"
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  void mix(unsigned char byte) {
    value_ ^= byte;
    value_ *= 0x100000001B3ULL;
  }
  std::uint64_t value_ = 0xCBF29CE484222325ULL;
};

}  // namespace

std::vector<std::string> fingerprints(const analyzers::Report& report) {
  std::vector<std::string> result;
  std::map<std::uint64_t, int> seen;
  for (const analyzers::Finding& finding : report.findings) {
    const analyzers::Culprit& culprit = finding.culprit;
    Fnv1a hash;
    hash.add(finding.rule);
    hash.add(culprit.op.value_or(""));
    hash.add(culprit.phase ? analyzers::phase_name(*culprit.phase) : "");
    hash.add(culprit.module.value_or(""));
    hash.add(culprit.parameter.value_or(""));
    hash.add(culprit.source ? relative_path(culprit.source->file, report.run.working_directory) : "");
    hash.add(culprit.source ? culprit.source->function : "");
    const int ordinal = ++seen[hash.value()];
    result.push_back(ordinal == 1 ? fmt::format("{:016x}", hash.value())
                                  : fmt::format("{:016x}-{}", hash.value(), ordinal));
  }
  return result;
}

}  // namespace ampscope::reporters
