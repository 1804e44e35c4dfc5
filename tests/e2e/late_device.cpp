// A library like libampscope_cuda.so for tensors in host memory, whose results come late: with it in
// AMPSCOPE_DEVICE_LIBRARY everything that a GPU's values go through runs on a machine without one.
#include "tests/stats/fake_device.h"

namespace {

/// What is sent for arrives after it has been asked for twice.
class LateDevice final : public ampscope::stats::FakeDevice {
 public:
  ampscope::stats::Arrival poll(int slot) noexcept override {
    if (++asked_ % 3 == 0) arrive(1);
    return FakeDevice::poll(slot);
  }

 private:
  int asked_ = 0;
};

}  // namespace

extern "C" [[gnu::visibility("default")]] const char* ampscope_statistics_device_type() {
  return "cpu";
}

extern "C" [[gnu::visibility("default")]] ampscope::stats::StatisticsDevice* ampscope_open_statistics_device(
    int interface_version, int, const char** why) {
  if (interface_version == ampscope::stats::device_interface_version) return new LateDevice;
  *why = "another version";
  return nullptr;
}
