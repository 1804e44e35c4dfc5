// The shared object that takes statistics on devices, loaded when the first tensor on one is seen.
#pragma once

#include <c10/core/Device.h>

#include "probe/stats/device.h"

namespace ampscope::observe {

/// Opens a device. Null where there is nothing for devices of that type, with an empty `why`, or where it cannot be
/// used. The library lies beside the adapter; AMPSCOPE_DEVICE_LIBRARY names another one.
[[nodiscard]] stats::StatisticsDevice* open_statistics_device(c10::Device device, const char** why) noexcept;

/// Whether a library for tensors in host memory has been given by AMPSCOPE_DEVICE_LIBRARY: how all of this is tested
/// on a machine without a GPU. Then values in host memory are only looked at through it.
[[nodiscard]] bool host_stands_in_for_device() noexcept;

/// The handle of the stream that work on the device is put on now, as the device's own library knows it.
[[nodiscard]] void* current_stream(c10::Device device);

}  // namespace ampscope::observe
