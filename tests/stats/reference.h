// What the statistics must be, worked out the slow way: every bit pattern is decoded by its definition into a double,
// and everything else follows from doubles. Shares no code with the kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "probe/stats/flat_stats.h"
#include "probe/stats/kernels.h"
#include "probe/stats/tensor_view.h"
#include "trace/tensor_stats.h"

namespace ampscope::stats::testing {

/// A floating format as its paper or standard defines it.
struct Definition {
  trace::DType dtype;
  const char* name;
  int bytes;
  int exponent_bits;
  int fraction_bits;
  int bias;
  enum class Specials { ieee, all_ones_is_nan, minus_zero_is_nan } specials;
};
/// The eight real types.
[[nodiscard]] std::span<const Definition> definitions();
[[nodiscard]] const Definition& definition(trace::DType dtype);

/// The value of a bit pattern; NaN for every NaN.
[[nodiscard]] double decode(const Definition& format, std::uint64_t bits);
/// The pattern of element `index` in memory.
[[nodiscard]] std::uint64_t pattern(const Definition& format, const void* data, std::int64_t index);

/// Statistics of these patterns. sum_squares: in long double, infinite as FlatStats documents.
[[nodiscard]] trace::TensorStats reference_stats(const Definition& format, std::span<const std::uint64_t> patterns);
[[nodiscard]] trace::TensorStats reference_stats(const Definition& format, const void* data, std::int64_t count);
[[nodiscard]] Sentinel reference_sentinel(const Definition& format, std::span<const std::uint64_t> patterns);

/// Empty when equal (sum_squares within the documented error), else what differs.
[[nodiscard]] std::string difference(const trace::TensorStats& expected, const FlatStats& got);
[[nodiscard]] std::string difference(const Sentinel& expected, const Sentinel& got);
[[nodiscard]] std::string difference(const trace::TensorStats& expected, const NonfiniteCount& got);

/// A dense view.
[[nodiscard]] TensorView dense(trace::DType dtype, const void* data, std::int64_t count);

/// Names of the kernel paths this machine can run, scalar last.
[[nodiscard]] std::vector<const char*> path_names();

}  // namespace ampscope::stats::testing
