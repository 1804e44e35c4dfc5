// How the bits of the floating formats are read. Everything is forced inline: this header is also included by files
// that are compiled for AVX2 or AVX-512, and a copy of a function from there must never be the one the linker keeps.
#pragma once

#include <cstdint>

#include "trace/tensor_stats.h"

namespace ampscope::stats {

enum class Format : std::uint8_t { none, float16, bfloat16, float32, float64, e4m3fn, e5m2, e4m3fnuz, e5m2fnuz };

/// Which bit patterns are not numbers.
enum class Specials : std::uint8_t {
  ieee,           ///< largest exponent: infinity, or NaN with a fraction
  nan_only,       ///< float8_e4m3fn: NaN is the all-ones magnitude; no infinity
  unsigned_zero,  ///< float8_*fnuz: NaN is the pattern of minus zero; no infinity and no minus zero
};

/// A binary format of one sign bit, `exponent_width` bits of exponent and `fraction_width` bits of fraction.
template <typename BitsType, int exponent_width, int fraction_width, int exponent_bias, Specials special_values>
struct Layout {
  using Bits = BitsType;
  static constexpr int fraction_bits = fraction_width;
  static constexpr int bias = exponent_bias;
  static constexpr Specials specials = special_values;
  static constexpr Bits sign_bit = static_cast<Bits>(Bits{1} << (exponent_width + fraction_width));
  static constexpr Bits magnitude_mask = static_cast<Bits>(sign_bit - 1);
  static constexpr int exponent_fields = 1 << exponent_width;
  /// Magnitude of infinity, or for a format without it the smallest magnitude that is no number.
  static constexpr Bits first_special = static_cast<Bits>(
      special_values == Specials::ieee ? (Bits{1} << (exponent_width + fraction_width)) - (Bits{1} << fraction_width)
                                       : (special_values == Specials::nan_only ? magnitude_mask : sign_bit));
  static constexpr Bits largest_finite = static_cast<Bits>(first_special - 1);
  static constexpr Bits smallest_normal = static_cast<Bits>(Bits{1} << fraction_width);

  [[gnu::always_inline]] static constexpr Bits magnitude(Bits bits) noexcept {
    return static_cast<Bits>(bits & magnitude_mask);
  }
  [[gnu::always_inline]] static constexpr bool negative(Bits bits) noexcept { return (bits & sign_bit) != 0; }
  [[gnu::always_inline]] static constexpr bool is_nan(Bits bits) noexcept {
    if constexpr (special_values == Specials::unsigned_zero) return bits == sign_bit;
    if constexpr (special_values == Specials::nan_only) return magnitude(bits) == magnitude_mask;
    return magnitude(bits) > first_special;
  }
  [[gnu::always_inline]] static constexpr bool is_infinity(Bits bits) noexcept {
    if constexpr (special_values != Specials::ieee) return false;
    return magnitude(bits) == first_special;
  }
  /// Exponent e of a finite non-zero magnitude m: 2^e <= m < 2^(e+1), for subnormals too.
  [[gnu::always_inline]] static constexpr int exponent(Bits nonzero_magnitude) noexcept {
    const int field = static_cast<int>(nonzero_magnitude >> fraction_width);
    if (field != 0) return field - exponent_bias;
    return 63 - __builtin_clzll(nonzero_magnitude) - fraction_width + 1 - exponent_bias;
  }
  /// Value of a finite magnitude. Put together from integers: a conversion would lose subnormals on a thread that
  /// treats them as zero.
  [[gnu::always_inline]] static constexpr double value(Bits finite_magnitude) noexcept {
    if (finite_magnitude == 0) return 0;
    constexpr int widening = 52 - fraction_width;
    if constexpr (widening == 0) {
      return __builtin_bit_cast(double, static_cast<std::uint64_t>(finite_magnitude));
    } else {
      const int e = exponent(finite_magnitude);
      const std::uint64_t fraction_and_one =
          (finite_magnitude >> fraction_width) != 0
              ? static_cast<std::uint64_t>(finite_magnitude & (smallest_normal - 1)) << widening
              : static_cast<std::uint64_t>(finite_magnitude) << (52 - (63 - __builtin_clzll(finite_magnitude)));
      const std::uint64_t fraction = fraction_and_one & ((std::uint64_t{1} << 52) - 1);
      return __builtin_bit_cast(double, static_cast<std::uint64_t>(e + 1023) << 52 | fraction);
    }
  }
};

using Float16 = Layout<std::uint16_t, 5, 10, 15, Specials::ieee>;
using BFloat16 = Layout<std::uint16_t, 8, 7, 127, Specials::ieee>;
using Float32 = Layout<std::uint32_t, 8, 23, 127, Specials::ieee>;
using Float64 = Layout<std::uint64_t, 11, 52, 1023, Specials::ieee>;
// The fp8 formats of "FP8 Formats for Deep Learning" (Micikevicius et al., 2022, table 1) and, with unsigned zero,
// "8-bit Numerical Formats for Deep Neural Networks" (Noune et al., 2022).
using Float8E4M3FN = Layout<std::uint8_t, 4, 3, 7, Specials::nan_only>;
using Float8E5M2 = Layout<std::uint8_t, 5, 2, 15, Specials::ieee>;
using Float8E4M3FNUZ = Layout<std::uint8_t, 4, 3, 8, Specials::unsigned_zero>;
using Float8E5M2FNUZ = Layout<std::uint8_t, 5, 2, 16, Specials::unsigned_zero>;

/// Calls `work` with a value of the format's layout; does nothing for Format::none.
template <typename Work>
[[gnu::always_inline]] inline constexpr void with_layout(Format format, const Work& work) noexcept {
  switch (format) {
    case Format::none:
      break;
    case Format::float16:
      work(Float16{});
      break;
    case Format::bfloat16:
      work(BFloat16{});
      break;
    case Format::float32:
      work(Float32{});
      break;
    case Format::float64:
      work(Float64{});
      break;
    case Format::e4m3fn:
      work(Float8E4M3FN{});
      break;
    case Format::e5m2:
      work(Float8E5M2{});
      break;
    case Format::e4m3fnuz:
      work(Float8E4M3FNUZ{});
      break;
    case Format::e5m2fnuz:
      work(Float8E5M2FNUZ{});
      break;
  }
}

}  // namespace ampscope::stats
