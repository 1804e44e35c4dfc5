// Statistics of tensors in the memory of a device: the small interface behind which the code for that device stands.
//
// The implementation for CUDA is a shared object of its own (probe/stats/cuda), loaded only by a process that uses
// CUDA; tests put a device of their own in its place. Work is given in slots. A slot collects results of one stream:
// launch() any number of times, fetch() once, then poll() until they are here and read() them.
#pragma once

#include <cstdint>
#include <span>

#include "probe/stats/flat_stats.h"
#include "probe/stats/tensor_view.h"

namespace ampscope::stats {

enum class Arrival : std::uint8_t {
  pending,
  ready,
  lost,  ///< the device has failed or is gone; what was asked will never be known
};

/// Nothing here throws, waits for the device or, after opening, allocates. One thread at a time may use an object.
class StatisticsDevice {
 public:
  static constexpr int slots = 16;
  static constexpr int rows = 256;       ///< places for results in a slot
  static constexpr int max_batch = 128;  ///< tensors in one launch

  virtual ~StatisticsDevice() = default;
  StatisticsDevice() = default;
  StatisticsDevice(const StatisticsDevice&) = delete;
  StatisticsDevice& operator=(const StatisticsDevice&) = delete;

  /// Whether work on the stream would become part of a graph that is being captured. Nothing may be launched then.
  [[nodiscard]] virtual bool capturing(void* stream) noexcept = 0;
  /// Rows that the result for a tensor takes; 0 when it cannot be looked at. A tensor of one element of any type
  /// is looked at; its value is min and max then.
  [[nodiscard]] virtual int rows_for(const TensorView& tensor) const noexcept = 0;
  /// Enqueues the look at all of `tensors` behind what is on the stream. `views[i].data` is an address of the device.
  /// Results go to consecutive rows from `first_row` on. False: nothing was enqueued.
  [[nodiscard]] virtual bool launch(int slot, int first_row, void* stream,
                                    std::span<const TensorView> tensors) noexcept = 0;
  /// Has the first `used_rows` rows brought to the host once what is on the stream is done. False: not now.
  [[nodiscard]] virtual bool fetch(int slot, int used_rows, void* stream) noexcept = 0;
  /// After fetch(). Does not wait.
  [[nodiscard]] virtual Arrival poll(int slot) noexcept = 0;
  /// Adds a result to `into`. Only of a slot that is ready. The slot can be filled again after its results are read.
  virtual void read(int slot, int row, const TensorView& tensor, FlatStats& into) noexcept = 0;
};

/// What the shared object exports under device_entry. Returns null and a reason when the device cannot be used.
/// `index`: which device, as torch numbers them. The object lives as long as the process.
using OpenStatisticsDevice = StatisticsDevice* (*)(int interface_version, int index, const char** why);
inline constexpr int device_interface_version = 1;
inline constexpr const char* device_entry = "ampscope_open_statistics_device";
/// Exported beside it: the type of device it serves, as torch spells it: "cuda".
inline constexpr const char* device_type_entry = "ampscope_statistics_device_type";

}  // namespace ampscope::stats
