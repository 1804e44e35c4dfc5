// torch.autocast for C++: a region in which eligible ops run in a lower precision.
#pragma once

#include <optional>

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

namespace ampscope::executor {

struct AutocastOptions {
  /// Empty: the device's default (half on CUDA, bfloat16 on CPU).
  std::optional<c10::ScalarType> dtype = std::nullopt;
  /// false makes a region in which autocast is off, also inside another that has it on.
  bool enabled = true;
  /// Whether weights are cast once per outermost region; empty: as it is outside.
  std::optional<bool> cache_enabled = std::nullopt;
};

/// Autocast is on (or off) for `device_type` in the current thread while the guard lives. Guards nest like blocks and
/// must be destroyed in reverse order, in the thread that made them; an exception that leaves the block restores
/// everything too. The cache of cast weights is dropped when the thread's outermost guard ends: kept longer it would
/// hand out weights from before the optimizer's step.
///
/// Like torch.autocast, a dtype that autocast has no kernels for, and CUDA where there is none, give a warning and a
/// region with autocast off.
class Autocast {
 public:
  /// @throws c10::Error for a device type that has no autocast
  explicit Autocast(c10::DeviceType device_type, AutocastOptions options = {});
  Autocast(c10::DeviceType device_type, c10::ScalarType dtype)
      : Autocast(device_type, AutocastOptions{.dtype = dtype, .enabled = true, .cache_enabled = std::nullopt}) {}
  ~Autocast();

  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  Autocast(Autocast&&) = delete;
  Autocast& operator=(Autocast&&) = delete;

  /// Whether autocast is on in this region.
  [[nodiscard]] bool enabled() const noexcept { return enabled_; }
  [[nodiscard]] c10::ScalarType dtype() const noexcept { return dtype_; }

 private:
  c10::DeviceType device_type_;
  bool enabled_;
  c10::ScalarType dtype_;
  bool outer_enabled_;
  c10::ScalarType outer_dtype_;
  bool outer_cache_enabled_;
};

}  // namespace ampscope::executor
