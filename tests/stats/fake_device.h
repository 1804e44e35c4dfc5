// A device made of host memory: takes the statistics at once and lets the results arrive when it is told to.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "probe/stats/device.h"
#include "probe/stats/kernels.h"

namespace ampscope::stats {

class FakeDevice : public StatisticsDevice {
 public:
  bool captures = false;  ///< every stream captures a graph
  bool refuses = false;   ///< launches fail
  bool at_once = false;   ///< results arrive with the fetch
  bool gone = false;      ///< everything asked for is lost
  int launches = 0;
  std::vector<int> fetched;  ///< slots in the order they were sent for, not yet arrived

  bool capturing(void*) noexcept override { return captures; }
  int rows_for(const TensorView& tensor) const noexcept override {
    if (!trace::is_floating(tensor.dtype) && tensor.count != 1) return 0;
    return tensor.dtype == trace::DType::float64 ? 7 : 1;
  }
  bool launch(int slot, int first_row, void*, std::span<const TensorView> tensors) noexcept override {
    if (refuses) return false;
    ++launches;
    int row = first_row;
    for (const TensorView& tensor : tensors) {
      auto& result = results_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)];
      result = std::make_unique<FlatStats>();
      if (trace::is_floating(tensor.dtype)) {
        accumulate(tensor, *result);
      } else {
        const double value = tensor.dtype == trace::DType::int32 ? *static_cast<const std::int32_t*>(tensor.data) : 0;
        result->include(value, value);
        result->count = 1;
      }
      row += rows_for(tensor);
    }
    return true;
  }
  bool fetch(int slot, int, void*) noexcept override {
    if (captures) return false;
    ready_[static_cast<std::size_t>(slot)] = at_once;
    if (!at_once) fetched.push_back(slot);
    return true;
  }
  Arrival poll(int slot) noexcept override {
    if (gone) return Arrival::lost;
    return ready_[static_cast<std::size_t>(slot)] ? Arrival::ready : Arrival::pending;
  }
  void read(int slot, int row, const TensorView&, FlatStats& into) noexcept override {
    merge(into, *results_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(row)]);
  }

  /// Lets what was sent for arrive.
  void arrive(std::size_t fetches) {
    for (std::size_t i = 0; i < fetches && !fetched.empty(); ++i) {
      ready_[static_cast<std::size_t>(fetched.front())] = true;
      fetched.erase(fetched.begin());
    }
  }

 private:
  std::array<bool, slots> ready_{};
  std::array<std::array<std::unique_ptr<FlatStats>, rows>, slots> results_;
};

}  // namespace ampscope::stats
