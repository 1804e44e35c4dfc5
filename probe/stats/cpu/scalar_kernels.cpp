// The reference: one element at a time, no assumption about the data.
#include <cstring>

#include "probe/stats/cpu/kernel_paths.h"

namespace ampscope::stats {

namespace {

template <typename Layout>
typename Layout::Bits load(const Run& run, std::size_t i) {
  typename Layout::Bits bits;
  std::memcpy(&bits, static_cast<const unsigned char*>(run.data) + i * sizeof(bits), sizeof(bits));
  return bits;
}

template <typename Layout>
void accumulate_as(Runs& runs, FlatStats& into) {
  using Bits = typename Layout::Bits;
  std::uint64_t finite = 0;
  // Signed magnitudes: in the order of the values, and both zeros are 0.
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  std::int64_t largest = std::numeric_limits<std::int64_t>::min();
  double squares = 0;
  for (Run run; runs.next(run);) {
    into.count += run.count;
    for (std::size_t i = 0; i < run.count; ++i) {
      const Bits bits = load<Layout>(run, i);
      const Bits magnitude = Layout::magnitude(bits);
      if (Layout::is_nan(bits)) {
        ++into.nan;
        continue;
      }
      if (Layout::is_infinity(bits)) {
        ++(Layout::negative(bits) ? into.negative_infinity : into.positive_infinity);
        continue;
      }
      ++finite;
      const auto signed_magnitude = static_cast<std::int64_t>(magnitude);
      const std::int64_t key = Layout::negative(bits) ? -signed_magnitude : signed_magnitude;
      if (key < smallest) smallest = key;
      if (key > largest) largest = key;
      if (magnitude == 0) {
        ++into.zero;
        continue;
      }
      if (magnitude < Layout::smallest_normal) ++into.subnormal;
      const int exponent = Layout::exponent(magnitude);
      into.add(exponent, 1);
      if constexpr (Layout::fraction_bits == 52) {
        if (exponent < -500) continue;
        if (exponent >= 500) {
          squares = std::numeric_limits<double>::infinity();
          continue;
        }
      }
      const double value = Layout::value(magnitude);
      squares += value * value;
    }
  }
  if (finite == 0) return;
  const auto value_of = [](std::int64_t key) {
    return key < 0 ? -Layout::value(static_cast<Bits>(-key)) : Layout::value(static_cast<Bits>(key));
  };
  into.include(value_of(smallest), value_of(largest));
  into.add_squares(squares);
}

void accumulate_scalar(Runs& runs, FlatStats& into) noexcept {
  with_layout(runs.format(), [&](auto layout) { accumulate_as<decltype(layout)>(runs, into); });
}

LargestMagnitude largest_magnitude_scalar(Runs& runs) noexcept {
  LargestMagnitude result;
  with_layout(runs.format(), [&](auto layout) {
    using Layout = decltype(layout);
    for (Run run; runs.next(run);) {
      for (std::size_t i = 0; i < run.count; ++i) {
        const auto bits = load<Layout>(run, i);
        if (Layout::is_nan(bits)) {
          result.nonfinite = true;
          continue;
        }
        result.nonfinite |= Layout::is_infinity(bits);
        if (Layout::magnitude(bits) > result.bits) result.bits = Layout::magnitude(bits);
      }
    }
  });
  return result;
}

NonfiniteCount count_nonfinite_scalar(Runs& runs) noexcept {
  NonfiniteCount result;
  with_layout(runs.format(), [&](auto layout) {
    using Layout = decltype(layout);
    for (Run run; runs.next(run);) {
      for (std::size_t i = 0; i < run.count; ++i) {
        const auto bits = load<Layout>(run, i);
        if (Layout::is_nan(bits)) ++result.nan;
        if (Layout::is_infinity(bits)) ++(Layout::negative(bits) ? result.negative_infinity : result.positive_infinity);
      }
    }
  });
  return result;
}

}  // namespace

constinit const KernelPath scalar_path = {"scalar", accumulate_scalar, largest_magnitude_scalar,
                                          count_nonfinite_scalar};

}  // namespace ampscope::stats
