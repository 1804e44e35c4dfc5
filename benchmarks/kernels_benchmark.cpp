// Speed of the statistics kernels, as a ratio to the speed of reading the same memory in the same moment.
//
//   taskset -c 0 build/<preset>/bin/kernels_benchmark
//
// Every iteration times one plain read of the array and one run of the kernel, so that whatever else the machine does
// hits both alike; `ratio` is the median time of the read over that of the kernel. The first touch of memory is done
// before.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <time.h>

#include "probe/stats/cpu/kernel_paths.h"

namespace {

using ampscope::stats::FlatStats;
using ampscope::stats::KernelPath;
using ampscope::stats::TensorView;
using ampscope::trace::DType;

constexpr std::size_t large_bytes = std::size_t{64} << 20;
constexpr std::size_t cached_bytes = std::size_t{256} << 10;

enum class Data { normal, gradient, relu, constant, wide, all_nan };

const char* name_of(Data data) {
  switch (data) {
    case Data::normal:
      return "normal";
    case Data::gradient:
      return "gradient";
    case Data::relu:
      return "relu";
    case Data::constant:
      return "constant";
    case Data::wide:
      return "wide";
    case Data::all_nan:
      return "all_nan";
  }
  return "";
}

double draw(Data data, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  switch (data) {
    case Data::normal:
      return normal(random);
    case Data::gradient:
      return 1e-4 * normal(random);  // many fp16 subnormals
    case Data::relu:
      return std::max(normal(random), 0.0);
    case Data::constant:
      return 0.75;
    case Data::wide:
      return normal(random) * std::exp2(4 * normal(random));
    case Data::all_nan:
      return std::nan("");
  }
  return 0;
}

void put(unsigned char* to, DType dtype, double value) {
  const auto single = static_cast<float>(value);
  const auto bits = __builtin_bit_cast(std::uint32_t, single);
  switch (dtype) {
    case DType::float16: {
      const auto half = static_cast<_Float16>(single);
      std::memcpy(to, &half, 2);
      break;
    }
    case DType::bfloat16: {
      const auto half = static_cast<std::uint16_t>(bits >> 16);
      std::memcpy(to, &half, 2);
      break;
    }
    case DType::float32:
      std::memcpy(to, &single, 4);
      break;
    case DType::float64:
      std::memcpy(to, &value, 8);
      break;
    default:
      *to = static_cast<unsigned char>(bits >> 20);
      break;
  }
}

/// One buffer for all, touched once.
unsigned char* memory() {
  static unsigned char* const block = [] {
    void* fresh = std::aligned_alloc(std::size_t{2} << 20, large_bytes);
    if (fresh == nullptr) std::abort();
    madvise(fresh, large_bytes, MADV_HUGEPAGE);
    std::memset(fresh, 1, large_bytes);
    return static_cast<unsigned char*>(fresh);
  }();
  return block;
}

/// A megabyte of random values, repeated: the kernels cannot tell, and drawing 64 MiB takes longer than measuring.
TensorView fill(DType dtype, Data data, std::size_t bytes) {
  const auto element = static_cast<std::size_t>(ampscope::trace::element_size(dtype));
  const std::size_t period = std::min(bytes, std::size_t{1} << 20);
  std::mt19937_64 random(7);
  for (std::size_t at = 0; at + element <= period; at += element)
    put(memory() + at, dtype, draw(data, random));
  for (std::size_t at = period; at < bytes; at += period) {
    std::memcpy(memory() + at, memory(), std::min(period, bytes - at));
  }
  TensorView view;
  view.data = memory();
  view.dtype = dtype;
  view.count = static_cast<std::int64_t>(bytes / element);
  return view;
}

// A vector type of the compiler; with AVX-512 one instruction, else two or four.
__attribute__((target_clones("avx512f", "avx2", "default"), noinline)) std::uint64_t read_all(const unsigned char* data,
                                                                                              std::size_t bytes) {
  using Line = std::uint64_t __attribute__((vector_size(64)));
  Line sum[4] = {};
  for (std::size_t at = 0; at < bytes; at += 256) {
    for (std::size_t k = 0; k < 4; ++k) {
      Line line;
      __builtin_memcpy(&line, data + at + 64 * k, sizeof(line));
      sum[k] |= line;
    }
  }
  const Line all = sum[0] | sum[1] | sum[2] | sum[3];
  return all[0] | all[1] | all[2] | all[3] | all[4] | all[5] | all[6] | all[7];
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of this thread alone: on a machine that does other things too, a clock on the wall also counts those.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Work>
double seconds(const Work& work) {
  const double start = thread_seconds();
  work();
  return thread_seconds() - start;
}

template <typename Kernel>
void against_read(benchmark::State& state, std::size_t bytes, const Kernel& kernel) {
  const std::size_t repeats = std::max<std::size_t>(1, (std::size_t{4} << 20) / bytes);
  std::vector<double> reads;
  std::vector<double> kernels;
  benchmark::DoNotOptimize(read_all(memory(), bytes));
  for (auto _ : state) {
    reads.push_back(seconds([&] {
      for (std::size_t i = 0; i < repeats; ++i)
        benchmark::DoNotOptimize(read_all(memory(), bytes));
    }));
    kernels.push_back(seconds([&] {
      for (std::size_t i = 0; i < repeats; ++i)
        kernel();
    }));
    state.SetIterationTime(kernels.back() / static_cast<double>(repeats));
  }
  const double amount = static_cast<double>(bytes * repeats) / 1e9;
  const double read = median(reads);
  const double run = median(kernels);
  state.counters["read_GB/s"] = amount / read;
  state.counters["GB/s"] = amount / run;
  state.counters["ratio"] = read / run;
}

FlatStats& scratch() {
  static FlatStats stats;
  return stats;
}

void fused(benchmark::State& state, const KernelPath* path, DType dtype, Data data, std::size_t bytes) {
  const TensorView view = fill(dtype, data, bytes);
  against_read(state, bytes, [&] {
    scratch().reset();
    ampscope::stats::accumulate(*path, view, scratch());
  });
}

void sentinel(benchmark::State& state, const KernelPath* path, DType dtype, std::size_t bytes) {
  const TensorView view = fill(dtype, Data::normal, bytes);
  against_read(state, bytes,
               [&] { benchmark::DoNotOptimize(ampscope::stats::check_nonfinite(*path, view).nonfinite); });
}

/// Every second column of a matrix, and the transpose of a batch of matrices.
void strided(benchmark::State& state, const KernelPath* path, bool every_second) {
  TensorView view = fill(DType::float32, Data::normal, large_bytes);
  view.contiguous = false;
  view.dims = 2;
  view.sizes = {4096, every_second ? 2048 : 2000};
  view.strides = {4096, every_second ? 2 : 1};
  view.count = view.sizes[0] * view.sizes[1];
  against_read(state, large_bytes, [&] {
    scratch().reset();
    ampscope::stats::accumulate(*path, view, scratch());
  });
}

void small_tensor(benchmark::State& state, const KernelPath* path, DType dtype, std::int64_t count, bool check) {
  TensorView view = fill(dtype, Data::normal, cached_bytes);
  view.count = count;
  for (auto _ : state) {
    if (check) {
      benchmark::DoNotOptimize(ampscope::stats::check_nonfinite(*path, view).nonfinite);
    } else {
      scratch().reset();
      ampscope::stats::accumulate(*path, view, scratch());
    }
  }
}

void register_all() {
  const DType dtypes[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};
  for (const char* path_name : {"avx512", "avx2", "scalar"}) {
    const KernelPath* path = ampscope::stats::find_path(path_name);
    if (path == nullptr) continue;
    const bool scalar = std::strcmp(path_name, "scalar") == 0;
    const auto add = [&](const std::string& what, auto function, auto... arguments) {
      return benchmark::RegisterBenchmark((std::string(path_name) + "/" + what).c_str(),
                                          [=](benchmark::State& state) { function(state, path, arguments...); });
    };
    for (const DType dtype : dtypes) {
      const std::string type = ampscope::trace::short_dtype_name(dtype);
      for (const Data data : {Data::normal, Data::gradient, Data::relu, Data::constant, Data::wide, Data::all_nan}) {
        if (scalar && data != Data::normal) continue;
        add("fused/" + type + "/" + name_of(data) + "/64MiB", fused, dtype, data, large_bytes)->UseManualTime();
      }
      add("sentinel/" + type + "/64MiB", sentinel, dtype, large_bytes)->UseManualTime();
      if (scalar) continue;
      add("fused/" + type + "/normal/256KiB", fused, dtype, Data::normal, cached_bytes)->UseManualTime();
      add("sentinel/" + type + "/256KiB", sentinel, dtype, cached_bytes)->UseManualTime();
      for (const std::int64_t count : {1, 100, 1000}) {
        add("fused/" + type + "/" + std::to_string(count), small_tensor, dtype, count, false);
        add("sentinel/" + type + "/" + std::to_string(count), small_tensor, dtype, count, true);
      }
    }
    if (scalar) continue;
    add("fused/fp8_e4m3fn/normal/64MiB", fused, DType::float8_e4m3fn, Data::normal, large_bytes)->UseManualTime();
    add("sentinel/fp8_e4m3fn/64MiB", sentinel, DType::float8_e4m3fn, large_bytes)->UseManualTime();
    add("strided/fp32/every_second", strided, true)->UseManualTime();
    add("strided/fp32/rows_of_2000", strided, false)->UseManualTime();
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
