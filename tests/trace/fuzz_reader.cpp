// A libFuzzer target for the reader. With clang, from the root:
//
//   CXX=clang++ CC=clang cmake -S . -B build/fuzz -G Ninja -DAMPSCOPE_BUILD_PROBE=OFF -DAMPSCOPE_FUZZ=ON \
//       -DAMPSCOPE_SANITIZE=fuzzer-no-link,address,undefined
//   cmake --build build/fuzz --target fuzz_reader fuzz_seeds
//   mkdir -p build/fuzz/corpus && build/fuzz/tests/fuzz_seeds build/fuzz/corpus
//   build/fuzz/tests/fuzz_reader -max_total_time=120 -max_len=20000 build/fuzz/corpus

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/trace/files.h"
#include "tests/trace/soundness.h"
#include "trace/describe.h"
#include "trace/frame.h"
#include "trace/reader.h"

namespace {

/// The first byte says what the rest is: mutations of compressed bytes seldom get past the checksum, so most inputs are
/// the content of a frame.
std::string file_from(const std::uint8_t* data, std::size_t size) {
  using namespace ampscope::trace;
  static Compressor compressor;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'f') return rest;
  std::string file = test::header_bytes();
  if (data[0] == 'h') return file + rest;
  // Two frames, so that records are met again and damage in the first is passed over.
  std::string error;
  const std::size_t half = rest.size() / 2;
  if (data[0] == '2') {
    compressor.append_frame(std::string_view(rest).substr(0, half), file, error);
    compressor.append_frame(std::string_view(rest).substr(half), file, error);
  } else {
    compressor.append_frame(rest, file, error);
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ampscope::trace;
  if (size == 0) return 0;
  ReadLimits limits;
  limits.frame_content = std::uint64_t{1} << 20;
  limits.memory_base = std::uint64_t{4} << 20;
  limits.scaler_updates = 10'000;
  const auto result = read_trace_bytes(file_from(data, size), "fuzz", limits);
  if (const auto* trace = std::get_if<Trace>(&result)) {
    if (const std::string what = test::unsound(*trace); !what.empty()) {
      std::fprintf(stderr, "the trace breaks a promise: %s\n", what.c_str());
      std::abort();
    }
    (void)describe(*trace);
  }
  return 0;
}
