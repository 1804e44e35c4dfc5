// What a kernel leaves behind for one tensor. Shared by device and host code.
#pragma once

#include <cstdint>

namespace ampscope::stats::cuda {

/// All zero before the kernel runs; blocks add to it. A double takes several rows, see rows_of(): the counts go on into
/// the next ones.
struct Row {
  static constexpr int bins = 296;

  std::uint64_t count;  ///< elements looked at
  std::uint64_t nan;
  std::uint64_t positive_infinity;
  std::uint64_t negative_infinity;
  /// Largest of `rank + 1` and of `all ones - rank + 1` over the finite elements, where ranks order values like the
  /// numbers they stand for (formats.h's bits, see counting.h). 0: there is none.
  std::uint64_t largest;
  std::uint64_t smallest;
  double sum_squares;
  std::uint64_t value;  ///< of a tensor with one element that is no floating type: its bits
  /// [0]: zeros. Below the number of exponent fields: elements with that field. From there on: subnormals by the place
  /// of their leading bit.
  std::uint64_t counts[bins];
};
static_assert(sizeof(Row) == 2432);

}  // namespace ampscope::stats::cuda
