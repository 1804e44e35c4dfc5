#include "executor/autocast.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <c10/util/Exception.h>

namespace ampscope::executor {
namespace {

bool can_be_enabled(c10::DeviceType device_type, c10::ScalarType dtype) {
  if (device_type == c10::DeviceType::CUDA && !at::hasCUDA()) {
    TORCH_WARN("Autocast for CUDA is off: there is no CUDA device in this process.");
    return false;
  }
  if (dtype != c10::ScalarType::Half && dtype != c10::ScalarType::BFloat16) {
    TORCH_WARN("Autocast is off: it casts to Half or BFloat16, and ", dtype, " was asked for.");
    return false;
  }
  return true;
}

}  // namespace

Autocast::Autocast(c10::DeviceType device_type, AutocastOptions options) : device_type_(device_type) {
  TORCH_CHECK(at::autocast::is_autocast_available(device_type), "There is no autocast for device type ",
              c10::DeviceTypeName(device_type, /*lower_case=*/true), ".");
  outer_enabled_ = at::autocast::is_autocast_enabled(device_type);
  outer_dtype_ = at::autocast::get_autocast_dtype(device_type);
  outer_cache_enabled_ = at::autocast::is_autocast_cache_enabled();
  dtype_ = options.dtype.value_or(outer_dtype_);
  enabled_ = options.enabled && can_be_enabled(device_type, dtype_);

  // Nothing below throws, so the destructor always undoes all of it or nothing.
  at::autocast::set_autocast_enabled(device_type, enabled_);
  at::autocast::set_autocast_dtype(device_type, dtype_);
  at::autocast::set_autocast_cache_enabled(options.cache_enabled.value_or(outer_cache_enabled_));
  at::autocast::increment_nesting();
}

Autocast::~Autocast() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_type_, outer_enabled_);
  at::autocast::set_autocast_dtype(device_type_, outer_dtype_);
  at::autocast::set_autocast_cache_enabled(outer_cache_enabled_);
}

}  // namespace ampscope::executor
