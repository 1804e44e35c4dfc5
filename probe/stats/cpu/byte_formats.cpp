#include "probe/stats/cpu/byte_formats.h"

#include <cstring>

#include "probe/stats/cpu/formats.h"

namespace ampscope::stats {

namespace {

class ByteCounts {
 public:
  explicit ByteCounts(Runs& runs) {
    for (Run run; runs.next(run);)
      add(static_cast<const unsigned char*>(run.data), run.count);
  }
  [[nodiscard]] std::uint64_t of(unsigned byte) const {
    return counts_[0][byte] + counts_[1][byte] + counts_[2][byte] + counts_[3][byte];
  }

 private:
  // Four tables: an increment that has to wait for the one before, of the same byte, takes several times as long.
  void add(const unsigned char* data, std::size_t count) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, data + i, sizeof(eight));
      for (unsigned k = 0; k < 8; ++k)
        ++counts_[k % 4][(eight >> (8 * k)) & 0xff];
    }
    for (; i < count; ++i)
      ++counts_[0][data[i]];
  }

  std::uint64_t counts_[4][256] = {};
};

}  // namespace

void accumulate_bytes(Runs& runs, FlatStats& into) noexcept {
  const ByteCounts counts(runs);
  with_layout(runs.format(), [&](auto layout) {
    using Layout = decltype(layout);
    using Bits = typename Layout::Bits;
    double squares = 0;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint64_t elements = counts.of(byte);
      if (elements == 0) continue;
      into.count += elements;
      const auto bits = static_cast<Bits>(byte);
      if (Layout::is_nan(bits)) {
        into.nan += elements;
        continue;
      }
      if (Layout::is_infinity(bits)) {
        (Layout::negative(bits) ? into.negative_infinity : into.positive_infinity) += elements;
        continue;
      }
      const Bits magnitude = Layout::magnitude(bits);
      const double absolute = Layout::value(magnitude);
      const double value = Layout::negative(bits) && magnitude != 0 ? -absolute : absolute;
      into.include(value, value);
      if (magnitude == 0) {
        into.zero += elements;
        continue;
      }
      if (magnitude < Layout::smallest_normal) into.subnormal += elements;
      into.add(Layout::exponent(magnitude), elements);
      squares += static_cast<double>(elements) * (absolute * absolute);
    }
    into.add_squares(squares);
  });
}

NonfiniteCount count_nonfinite_bytes(Runs& runs) noexcept {
  const ByteCounts counts(runs);
  NonfiniteCount result;
  with_layout(runs.format(), [&](auto layout) {
    using Layout = decltype(layout);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const auto bits = static_cast<typename Layout::Bits>(byte);
      if (Layout::is_nan(bits)) result.nan += counts.of(byte);
      if (Layout::is_infinity(bits)) {
        (Layout::negative(bits) ? result.negative_infinity : result.positive_infinity) += counts.of(byte);
      }
    }
  });
  return result;
}

}  // namespace ampscope::stats
