// How near the CUDA kernels come to the speed of reading memory: ratios to a kernel that only reads, in the same run.
//
//   cuda_benchmark LIBRARY [MIB]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <dlfcn.h>

#include "probe/stats/device.h"

namespace {

using ampscope::stats::StatisticsDevice;
using ampscope::stats::TensorView;

enum class Data { uniform_bits, normal, one_value, zeros };

__global__ void fill(std::uint32_t* words, std::uint64_t count, Data data, bool half) {
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x) {
    std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 32;
    const auto bits = static_cast<std::uint32_t>(x);
    // Like activations: exponents fall off by half from one, any fraction.
    const int below = min(__ffs(static_cast<int>(x >> 33) | 1 << 14) - 1, 14);
    std::uint32_t value = 0;
    switch (data) {
      case Data::uniform_bits:
        value = bits;
        break;
      case Data::normal:
        value = half ? ((bits & 0x83ff83ffU) | static_cast<unsigned>(15 - below) << 10 |
                        static_cast<unsigned>(15 - below) << 26)
                     : ((bits & 0x807fffffU) | static_cast<unsigned>(127 - below) << 23);
        break;
      case Data::one_value:
        value = half ? 0x3c003c00U : 0x3f800000U;
        break;
      case Data::zeros:
        break;
    }
    words[i] = value;
  }
}

__global__ void read_all(const uint4* vectors, std::uint64_t count, std::uint32_t* sink) {
  std::uint32_t all = 0;
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < count; i += 4 * stride) {
    uint4 loaded[4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (i + k * stride < count) loaded[k] = vectors[i + k * stride];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      all ^= loaded[k].x ^ loaded[k].y ^ loaded[k].z ^ loaded[k].w;
  }
  if (all == 0x12345678) *sink = all;
}

template <typename Work>
double milliseconds(cudaStream_t stream, const Work& work) {
  std::vector<float> times;
  cudaEvent_t start, end;
  cudaEventCreate(&start);
  cudaEventCreate(&end);
  for (int round = 0; round < 12; ++round) {
    cudaEventRecord(start, stream);
    work();
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    float time = 0;
    cudaEventElapsedTime(&time, start, end);
    if (round >= 2) times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cuda_benchmark LIBRARY [MIB]\n");
    return 2;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "cuda_benchmark: there is no CUDA device\n");
    return 3;
  }
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const auto open =
      library ? reinterpret_cast<ampscope::stats::OpenStatisticsDevice>(dlsym(library, ampscope::stats::device_entry))
              : nullptr;
  const char* why = library ? "it is no library of ampscope" : dlerror();
  StatisticsDevice* const device = open ? open(ampscope::stats::device_interface_version, 0, &why) : nullptr;
  if (!device) {
    std::fprintf(stderr, "cuda_benchmark: %s: %s\n", argv[1], why);
    return 1;
  }
  const std::uint64_t bytes = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1024) << 20;
  cudaDeviceProp properties{};
  cudaGetDeviceProperties(&properties, 0);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  std::uint32_t* memory = nullptr;
  std::uint32_t* sink = nullptr;
  if (cudaMalloc(&memory, bytes) != cudaSuccess || cudaMalloc(&sink, 4) != cudaSuccess) {
    std::fprintf(stderr, "cuda_benchmark: no memory for %llu MiB\n", static_cast<unsigned long long>(bytes >> 20));
    return 1;
  }
  const unsigned blocks = static_cast<unsigned>(properties.multiProcessorCount) * 8;
  const double read = milliseconds(
      stream, [&] { read_all<<<blocks, 256, 0, stream>>>(reinterpret_cast<uint4*>(memory), bytes / 16, sink); });
  std::printf("%s, %llu MiB, reading only: %.0f GB/s\n", properties.name, static_cast<unsigned long long>(bytes >> 20),
              static_cast<double>(bytes) / read / 1e6);
  struct Case {
    const char* name;
    ampscope::trace::DType dtype;
    int size;
  };
  const Case cases[] = {{"float16", ampscope::trace::DType::float16, 2},
                        {"bfloat16", ampscope::trace::DType::bfloat16, 2},
                        {"float32", ampscope::trace::DType::float32, 4},
                        {"float64", ampscope::trace::DType::float64, 8}};
  const std::pair<const char*, Data> kinds[] = {{"uniform bits", Data::uniform_bits},
                                                {"like activations", Data::normal},
                                                {"one value", Data::one_value},
                                                {"zeros", Data::zeros}};
  std::printf("ratio to reading only:\n%-18s", "");
  for (const Case& one : cases)
    std::printf("%10s", one.name);
  std::printf("\n");
  for (const auto& [name, data] : kinds) {
    std::printf("%-18s", name);
    for (const Case& one : cases) {
      fill<<<blocks, 256, 0, stream>>>(memory, bytes / 4, data, one.size == 2);
      TensorView view;
      view.data = memory;
      view.dtype = one.dtype;
      view.count = static_cast<std::int64_t>(bytes / static_cast<unsigned>(one.size));
      bool launched = true;
      const double time = milliseconds(stream, [&] { launched &= device->launch(0, 0, stream, {&view, 1}); });
      std::printf(launched ? "%10.2f" : "    failed", read / time);
    }
    std::printf("\n");
  }
  // A model's gradients: many small tensors in one launch.
  std::vector<TensorView> small(StatisticsDevice::max_batch);
  for (std::size_t i = 0; i < small.size(); ++i) {
    small[i].data = memory + i * 4096;
    small[i].dtype = ampscope::trace::DType::float32;
    small[i].count = 1000;
  }
  const double batch = milliseconds(stream, [&] { static_cast<void>(device->launch(0, 0, stream, small)); });
  std::printf("%zu tensors of 1,000 floats in one launch: %.1f us\n", small.size(), batch * 1000);
  return 0;
}
