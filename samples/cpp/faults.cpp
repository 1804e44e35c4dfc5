#include "samples/cpp/faults.h"

#include <algorithm>

namespace ampscope::samples {

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> faults = [] {
    std::vector<Fault> all = protocol_faults();
    for (Fault& fault : number_faults())
      all.push_back(std::move(fault));
    std::sort(all.begin(), all.end(), [](const Fault& a, const Fault& b) { return a.name < b.name; });
    return all;
  }();
  return faults;
}

}  // namespace ampscope::samples
