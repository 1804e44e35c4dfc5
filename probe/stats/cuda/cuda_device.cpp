// A CUDA device behind the interface of probe/stats/device.h. The CUDA runtime is linked in statically: its errors are
// ours alone, and the process need not have the same one. It finds the driver itself, and the driver's primary context
// is the one that torch uses.
#include <cstdint>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>
#include <unistd.h>

#include "probe/stats/cuda/batch.h"
#include "probe/stats/cuda/kernels.h"
#include "probe/stats/device.h"

namespace ampscope::stats::cuda {
namespace {

/// Makes a device current for the calling thread while it lives.
class OnDevice {
 public:
  explicit OnDevice(int index) noexcept {
    if (cudaGetDevice(&before_) != cudaSuccess) before_ = index;
    if (before_ != index) cudaSetDevice(index);
    changed_ = before_ != index;
    // While any stream of the process captures a graph, calls that look unsafe would end the capture, also from
    // threads that have nothing to do with it. None of ours touches a stream that captures.
    cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~OnDevice() {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

class CudaDevice final : public StatisticsDevice {
 public:
  /// Allocates everything that will ever be needed.
  static std::unique_ptr<CudaDevice> open(int index, cudaError_t& error) noexcept {
    std::unique_ptr<CudaDevice> device(new (std::nothrow) CudaDevice(index));
    if (!device) {
      error = cudaErrorMemoryAllocation;
      return nullptr;
    }
    error = device->prepare();
    return error == cudaSuccess ? std::move(device) : nullptr;
  }

  ~CudaDevice() override {
    const OnDevice current(index_);
    for (Slot& slot : slots_) {
      if (slot.produced) cudaEventDestroy(slot.produced);
      if (slot.arrived) cudaEventDestroy(slot.arrived);
    }
    if (aside_) cudaStreamDestroy(aside_);
    cudaFree(rows_);
    cudaFreeHost(results_);
  }

  bool capturing(void* stream) noexcept override {
    const OnDevice current(index_);
    return is_capturing(static_cast<cudaStream_t>(stream));
  }

  int rows_for(const TensorView& tensor) const noexcept override {
    Descriptor descriptor;
    Geometry geometry;
    if (describe(tensor, descriptor, geometry) == Shape::unsupported) return 0;
    return rows_of(descriptor.format);
  }

  bool launch(int slot, int first_row, void* stream, std::span<const TensorView> tensors) noexcept override {
    const OnDevice current(index_);
    const auto on = static_cast<cudaStream_t>(stream);
    if (tensors.size() > max_batch || is_capturing(on)) return false;
    Row* const results = rows_ + slot * StatisticsDevice::rows;
    Batch batch;
    int row = first_row;
    for (const TensorView& tensor : tensors) {
      Descriptor descriptor;
      Geometry geometry;
      const Shape shape = describe(tensor, descriptor, geometry);
      if (shape == Shape::unsupported) return false;
      descriptor.row = static_cast<std::uint16_t>(row);
      row += rows_of(descriptor.format);
      if (descriptor.count == 0) continue;
      if (shape == Shape::dense) {
        add(batch, descriptor, descriptor.row);
      } else if (cuda::launch(descriptor, geometry, results, most_blocks_, on) != cudaSuccess) {
        return false;
      }
    }
    return batch.count == 0 || cuda::launch(batch, results, most_blocks_, on) == cudaSuccess;
  }

  bool fetch(int slot, int used_rows, void* stream) noexcept override {
    const OnDevice current(index_);
    const auto producer = static_cast<cudaStream_t>(stream);
    if (is_capturing(producer)) return false;
    Slot& s = slots_[slot];
    const std::size_t first = static_cast<std::size_t>(slot) * StatisticsDevice::rows;
    const std::size_t bytes = static_cast<std::size_t>(used_rows) * sizeof(Row);
    // The copy runs on a stream of our own, beside what the program does next, and so does the clearing of the rows
    // for their next use.
    s.failed = cudaEventRecord(s.produced, producer) != cudaSuccess ||
               cudaStreamWaitEvent(aside_, s.produced, 0) != cudaSuccess ||
               cudaMemcpyAsync(results_ + first, rows_ + first, bytes, cudaMemcpyDeviceToHost, aside_) != cudaSuccess ||
               cudaMemsetAsync(rows_ + first, 0, bytes, aside_) != cudaSuccess ||
               cudaEventRecord(s.arrived, aside_) != cudaSuccess;
    return true;
  }

  Arrival poll(int slot) noexcept override {
    if (slots_[slot].failed) return Arrival::lost;
    const OnDevice current(index_);
    switch (cudaEventQuery(slots_[slot].arrived)) {
      case cudaSuccess:
        return Arrival::ready;
      case cudaErrorNotReady:
        return Arrival::pending;
      default:
        return Arrival::lost;
    }
  }

  void read(int slot, int row, const TensorView& tensor, FlatStats& into) noexcept override {
    read_row(results_[slot * StatisticsDevice::rows + row], tensor, into);
  }

 private:
  struct Slot {
    cudaEvent_t produced = nullptr;
    cudaEvent_t arrived = nullptr;
    bool failed = false;
  };

  explicit CudaDevice(int index) noexcept : index_(index) {}

  cudaError_t prepare() noexcept {
    const OnDevice current(index_);
    constexpr std::size_t bytes = sizeof(Row) * StatisticsDevice::rows * StatisticsDevice::slots;
    int multiprocessors = 0;
    std::size_t blocks = 1;
    cudaError_t error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, index_);
    if (error == cudaSuccess) error = allow_counters(blocks);
    most_blocks_ = static_cast<std::size_t>(multiprocessors) * blocks;
    if (error == cudaSuccess) error = cudaMalloc(reinterpret_cast<void**>(&rows_), bytes);
    if (error == cudaSuccess) error = cudaMallocHost(reinterpret_cast<void**>(&results_), bytes);
    // Without the flag the stream would wait for the legacy default stream, and that one for it.
    if (error == cudaSuccess) error = cudaStreamCreateWithFlags(&aside_, cudaStreamNonBlocking);
    for (Slot& slot : slots_) {
      if (error == cudaSuccess) error = cudaEventCreateWithFlags(&slot.produced, cudaEventDisableTiming);
      if (error == cudaSuccess) error = cudaEventCreateWithFlags(&slot.arrived, cudaEventDisableTiming);
    }
    if (error == cudaSuccess) error = cudaMemsetAsync(rows_, 0, bytes, aside_);
    // Once, before anything is looked at: results must not be added to rows that are still to be cleared.
    if (error == cudaSuccess) error = cudaStreamSynchronize(aside_);
    return error;
  }

  static bool is_capturing(cudaStream_t stream) noexcept {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    // An error says that the default stream may not be used because another one captures.
    return cudaStreamIsCapturing(stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone;
  }

  int index_;
  std::size_t most_blocks_ = 1;
  Row* rows_ = nullptr;
  Row* results_ = nullptr;  // page-locked memory of the host
  cudaStream_t aside_ = nullptr;
  Slot slots_[StatisticsDevice::slots];
};

const pid_t loaded_in = getpid();

}  // namespace
}  // namespace ampscope::stats::cuda

extern "C" [[gnu::visibility("default")]] const char* ampscope_statistics_device_type() {
  return "cuda";
}

extern "C" [[gnu::visibility("default")]] ampscope::stats::StatisticsDevice* ampscope_open_statistics_device(
    int interface_version, int index, const char** why) {
  using ampscope::stats::cuda::CudaDevice;
  if (interface_version != ampscope::stats::device_interface_version) {
    *why = "libampscope_cuda.so is of another version of ampscope";
    return nullptr;
  }
  if (getpid() != ampscope::stats::cuda::loaded_in) {
    *why = "CUDA cannot be used in a forked process";
    return nullptr;
  }
  cudaError_t error = cudaSuccess;
  auto device = CudaDevice::open(index, error);
  if (!device) *why = cudaGetErrorString(error);
  return device.release();  // Lives as long as the process, see probe/stats/device.h.
}
