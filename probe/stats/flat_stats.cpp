#include "probe/stats/flat_stats.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace ampscope::stats {

namespace {

// Orders doubles by their bits. A comparison of subnormals as floating-point numbers says "equal" on a thread that the
// program has told to treat them as zero (torch.set_flush_denormal).
std::int64_t order(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}

double magnitude(double value) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & (~std::uint64_t{0} >> 1));
}

constexpr double square_sum_limit = 0x1p1020;

}  // namespace

void FlatStats::add(int exponent, std::uint64_t elements) noexcept {
  counts[exponent - lowest_exponent] += elements;
  if (exponent < lowest) lowest = exponent;
  if (exponent > highest) highest = exponent;
}

void FlatStats::include(double smallest, double largest) noexcept {
  if (order(smallest) < order(min)) min = smallest;
  if (order(largest) > order(max)) max = largest;
  for (const double value : {magnitude(smallest), magnitude(largest)}) {
    if (order(value) > order(absmax)) absmax = value;
  }
}

void FlatStats::add_squares(double squares) noexcept {
  if (sum_squares < square_sum_limit && squares < square_sum_limit) {
    sum_squares += squares;
  } else {
    sum_squares = std::numeric_limits<double>::infinity();
  }
}

void FlatStats::reset() noexcept {
  for (int exponent = lowest; exponent <= highest; ++exponent)
    counts[exponent - lowest_exponent] = 0;
  lowest = highest_exponent + 1;
  highest = lowest_exponent - 1;
  count = nan = positive_infinity = negative_infinity = zero = subnormal = 0;
  min = std::numeric_limits<double>::infinity();
  max = -std::numeric_limits<double>::infinity();
  absmax = sum_squares = 0;
}

void merge(FlatStats& into, const FlatStats& from) noexcept {
  into.count += from.count;
  into.nan += from.nan;
  into.positive_infinity += from.positive_infinity;
  into.negative_infinity += from.negative_infinity;
  into.zero += from.zero;
  into.subnormal += from.subnormal;
  if (from.nonfinite() < from.count) into.include(from.min, from.max);
  into.add_squares(from.sum_squares);
  for (int exponent = from.lowest; exponent <= from.highest; ++exponent) {
    const std::uint64_t elements = from.counts[exponent - FlatStats::lowest_exponent];
    if (elements != 0) into.add(exponent, elements);
  }
}

bool divide_by_power_of_two(FlatStats& stats, int exponent, int smallest_normal) noexcept {
  if (stats.lowest > stats.highest || exponent == 0) return true;
  // Below the smallest normal double a division rounds.
  if (stats.lowest - exponent < std::numeric_limits<double>::min_exponent - 1) return false;
  if (stats.highest - exponent > FlatStats::highest_exponent) return false;
  std::uint64_t* const first = stats.counts + (stats.lowest - FlatStats::lowest_exponent);
  const auto length = static_cast<std::size_t>(stats.highest - stats.lowest) + 1;
  std::uint64_t* const target = first - exponent;
  std::memmove(target, first, length * sizeof *first);
  // What the moved counts do not cover of their old place is empty now.
  for (std::size_t i = 0; i < length; ++i) {
    if (first + i < target || first + i >= target + length) first[i] = 0;
  }
  stats.lowest -= exponent;
  stats.highest -= exponent;
  for (double* value : {&stats.min, &stats.max, &stats.absmax})
    *value = std::ldexp(*value, -exponent);
  stats.sum_squares = std::ldexp(stats.sum_squares, -2 * exponent);
  stats.subnormal = 0;
  for (int e = stats.lowest; e <= stats.highest && e < smallest_normal; ++e)
    stats.subnormal += stats.at(e);
  return true;
}

trace::TensorStats to_tensor_stats(const FlatStats& stats) {
  trace::TensorStats result;
  result.count = stats.count;
  result.nan = stats.nan;
  result.positive_infinity = stats.positive_infinity;
  result.negative_infinity = stats.negative_infinity;
  result.zero = stats.zero;
  result.subnormal = stats.subnormal;
  result.min = stats.min;
  result.max = stats.max;
  result.absmax = stats.absmax;
  result.sum_squares = stats.sum_squares;
  int first = stats.lowest;
  int last = stats.highest;
  while (first <= last && stats.at(first) == 0)
    ++first;
  while (last >= first && stats.at(last) == 0)
    --last;
  if (first <= last) {
    const std::uint64_t* begin = stats.counts + (first - FlatStats::lowest_exponent);
    result.exponents.first = first;
    result.exponents.counts.assign(begin, begin + (last - first + 1));
  }
  return result;
}

}  // namespace ampscope::stats
