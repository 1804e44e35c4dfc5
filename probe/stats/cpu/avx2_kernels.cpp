// The kernels in AVX2 (with BMI2, FMA and F16C): Haswell and later, Zen and later.
// This file alone is compiled for those instructions; see vector_scan.h on how its code stays inside it.
#include <immintrin.h>

#include "probe/stats/cpu/vector_paths.h"

namespace ampscope::stats {

namespace {

#define AMPSCOPE_INLINE [[gnu::always_inline]] static inline

struct Avx2 {
  using Vector = __m256i;
  using Float = __m256;
  using Double = __m256d;

  AMPSCOPE_INLINE Vector load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
  AMPSCOPE_INLINE void store(void* to, Vector v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
  AMPSCOPE_INLINE Vector zero() { return _mm256_setzero_si256(); }
  AMPSCOPE_INLINE Vector ones() { return _mm256_set1_epi64x(-1); }
  template <int width>
  AMPSCOPE_INLINE Vector broadcast(std::uint64_t bits) {
    if constexpr (width == 1) return _mm256_set1_epi8(static_cast<char>(bits));
    if constexpr (width == 2) return _mm256_set1_epi16(static_cast<short>(bits));
    if constexpr (width == 4) return _mm256_set1_epi32(static_cast<int>(bits));
    return _mm256_set1_epi64x(static_cast<long long>(bits));
  }
  AMPSCOPE_INLINE Vector bit_and(Vector a, Vector b) { return _mm256_and_si256(a, b); }
  AMPSCOPE_INLINE Vector bit_or(Vector a, Vector b) { return _mm256_or_si256(a, b); }
  AMPSCOPE_INLINE Vector bit_xor(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
  AMPSCOPE_INLINE bool is_zero(Vector v) { return _mm256_testz_si256(v, v) != 0; }
  AMPSCOPE_INLINE void full_adder(Vector& sum, Vector a, Vector b, Vector& carry) {
    const Vector difference = bit_xor(sum, a);
    carry = bit_or(bit_and(sum, a), bit_and(difference, b));
    sum = bit_xor(difference, b);
  }

  template <int width>
  AMPSCOPE_INLINE Vector add(Vector a, Vector b) {
    if constexpr (width == 1) return _mm256_add_epi8(a, b);
    if constexpr (width == 2) return _mm256_add_epi16(a, b);
    if constexpr (width == 4) return _mm256_add_epi32(a, b);
    return _mm256_add_epi64(a, b);
  }
  template <int width>
  AMPSCOPE_INLINE Vector max_signed(Vector a, Vector b) {
    if constexpr (width == 2) return _mm256_max_epi16(a, b);
    if constexpr (width == 4) return _mm256_max_epi32(a, b);
    return _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi64(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE Vector max_unsigned(Vector a, Vector b) {
    if constexpr (width == 1) return _mm256_max_epu8(a, b);
    if constexpr (width == 2) return _mm256_max_epu16(a, b);
    if constexpr (width == 4) return _mm256_max_epu32(a, b);
    return _mm256_blendv_epi8(b, a, greater_lanes<8>(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE Vector min_unsigned(Vector a, Vector b) {
    if constexpr (width == 2) return _mm256_min_epu16(a, b);
    if constexpr (width == 4) return _mm256_min_epu32(a, b);
    return _mm256_blendv_epi8(a, b, greater_lanes<8>(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE bool any_greater_signed(Vector a, Vector b) {
    if constexpr (width == 2) return !is_zero(_mm256_cmpgt_epi16(a, b));
    if constexpr (width == 4) return !is_zero(_mm256_cmpgt_epi32(a, b));
    return !is_zero(_mm256_cmpgt_epi64(a, b));
  }
  /// A bit for each lane in which a > b.
  template <int width>
  AMPSCOPE_INLINE std::uint64_t greater_unsigned(Vector a, Vector b) {
    return lane_bits_of<width>(greater_lanes<width>(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE std::uint64_t equal(Vector a, Vector b) {
    if constexpr (width == 2) return lane_bits_of<2>(_mm256_cmpeq_epi16(a, b));
    if constexpr (width == 4) return lane_bits_of<4>(_mm256_cmpeq_epi32(a, b));
    return lane_bits_of<8>(_mm256_cmpeq_epi64(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE bool any_greater_unsigned(Vector a, Vector b) {
    return !is_zero(greater_lanes<width>(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE bool any_zero(Vector v) {
    if constexpr (width == 2) return !is_zero(_mm256_cmpeq_epi16(v, zero()));
    if constexpr (width == 4) return !is_zero(_mm256_cmpeq_epi32(v, zero()));
    return !is_zero(_mm256_cmpeq_epi64(v, zero()));
  }
  /// `a` with zeros in the lanes whose value is above `bound`, compared by their magnitude.
  template <int width>
  AMPSCOPE_INLINE Vector keep_up_to(Vector a, Vector magnitude, Vector bound) {
    return _mm256_andnot_si256(greater_lanes<width>(magnitude, bound), a);
  }
  /// Magnitudes of an fp8 format whose only NaN has the bits of minus zero; of NaN: all ones.
  AMPSCOPE_INLINE Vector unsigned_zero_magnitude(Vector bits) {
    const Vector nan = _mm256_cmpeq_epi8(bits, broadcast<1>(0x80));
    return bit_or(bit_and(bits, broadcast<1>(0x7f)), nan);
  }

  /// Counts the lanes that are zero but for bits outside the mask; good for 32,767 vectors.
  template <int width>
  class ZeroCounter {
   public:
    [[gnu::always_inline]] inline void add(Vector v, Vector mask) {
      v = bit_and(v, mask);
      if constexpr (width == 2) count_ = _mm256_sub_epi16(count_, _mm256_cmpeq_epi16(v, zero()));
      if constexpr (width == 4) count_ = _mm256_sub_epi32(count_, _mm256_cmpeq_epi32(v, zero()));
      if constexpr (width == 8) count_ = _mm256_sub_epi64(count_, _mm256_cmpeq_epi64(v, zero()));
    }
    [[gnu::always_inline]] inline std::uint64_t total() const {
      Vector wide = count_;
      if constexpr (width == 2) wide = _mm256_madd_epi16(wide, _mm256_set1_epi16(1));
      if constexpr (width < 8) {
        wide = _mm256_add_epi64(_mm256_and_si256(wide, _mm256_set1_epi64x(0xffffffff)), _mm256_srli_epi64(wide, 32));
      }
      const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
      return static_cast<std::uint64_t>(_mm_cvtsi128_si64(half)) +
             static_cast<std::uint64_t>(_mm_extract_epi64(half, 1));
    }

   private:
    Vector count_ = zero();
  };

  /// In each lane of `lane_bits` the bit whose number is in the bits from `shift` on, modulo lane_bits.
  template <int lane_bits>
  AMPSCOPE_INLINE Vector one_hot(Vector v, int shift) {
    if constexpr (lane_bits == 32) {
      return _mm256_sllv_epi32(_mm256_set1_epi32(1), bit_and(_mm256_srli_epi32(v, shift), _mm256_set1_epi32(31)));
    }
    return _mm256_sllv_epi64(_mm256_set1_epi64x(1), bit_and(_mm256_srli_epi64(v, shift), _mm256_set1_epi64x(63)));
  }
  template <int lane_bits>
  AMPSCOPE_INLINE std::uint64_t or_of_lanes(Vector v) {
    const __m128i half = _mm_or_si128(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    const auto all = static_cast<std::uint64_t>(_mm_cvtsi128_si64(half) | _mm_extract_epi64(half, 1));
    return lane_bits == 32 ? (all | all >> 32) & 0xffffffffU : all;
  }
  template <int lane_bits>
  AMPSCOPE_INLINE int lanes_with_bit(Vector v, int bit) {
    const __m128i to_sign = _mm_cvtsi32_si128(lane_bits - 1 - bit);
    if constexpr (lane_bits == 32) {
      const Vector moved = _mm256_sll_epi32(v, to_sign);
      return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(moved))));
    }
    const Vector moved = _mm256_sll_epi64(v, to_sign);
    return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(moved))));
  }

  template <int width>
  AMPSCOPE_INLINE std::uint64_t reduce_max_unsigned(Vector v) {
    if constexpr (width == 1) {
      return reduce_max_unsigned<2>(_mm256_max_epu16(bit_and(v, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(v, 8)));
    }
    constexpr std::uint64_t all = width == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * (width % 8))) - 1;
    return all ^ reduce_min_unsigned<width>(bit_xor(v, ones()));
  }
  template <int width>
  AMPSCOPE_INLINE std::uint64_t reduce_min_unsigned(Vector v) {
    const __m128i low = _mm256_castsi256_si128(v);
    const __m128i high = _mm256_extracti128_si256(v, 1);
    if constexpr (width == 2) {
      return static_cast<std::uint16_t>(_mm_extract_epi16(_mm_minpos_epu16(_mm_min_epu16(low, high)), 0));
    }
    if constexpr (width == 4) {
      __m128i half = _mm_min_epu32(low, high);
      half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0x4e));
      half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0xb1));
      return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
    }
    const __m128i half =
        _mm_blendv_epi8(low, high, _mm256_castsi256_si128(greater_lanes<8>(v, _mm256_castsi128_si256(high))));
    const auto first = static_cast<std::uint64_t>(_mm_cvtsi128_si64(half));
    const auto second = static_cast<std::uint64_t>(_mm_extract_epi64(half, 1));
    return first < second ? first : second;
  }
  template <int width>
  AMPSCOPE_INLINE std::uint64_t reduce_max_signed(Vector v) {
    constexpr std::uint64_t sign = std::uint64_t{1} << (8 * width - 1);
    return sign ^ reduce_max_unsigned<width>(bit_xor(v, broadcast<width>(sign)));
  }

  // vcvtph2ps does not heed "denormals are zero".
  AMPSCOPE_INLINE Float float16_as_float(const void* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(at)));
  }
  AMPSCOPE_INLINE Vector bits_of(Float v) { return _mm256_castps_si256(v); }
  AMPSCOPE_INLINE Float load_floats(const void* at) { return _mm256_loadu_ps(static_cast<const float*>(at)); }
  AMPSCOPE_INLINE Double load_doubles(const void* at) { return _mm256_loadu_pd(static_cast<const double*>(at)); }
  AMPSCOPE_INLINE Float even_bfloats(Vector v) { return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)); }
  AMPSCOPE_INLINE Float odd_bfloats(Vector v) {
    return _mm256_castsi256_ps(bit_and(v, _mm256_set1_epi32(static_cast<int>(0xffff0000U))));
  }
  AMPSCOPE_INLINE Float multiply(Float a, Float b) { return _mm256_mul_ps(a, b); }
  AMPSCOPE_INLINE Float multiply_add(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  AMPSCOPE_INLINE Double multiply_add(Double a, Double b, Double c) { return _mm256_fmadd_pd(a, b, c); }
  AMPSCOPE_INLINE Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  AMPSCOPE_INLINE Double add(Double a, Double b) { return _mm256_add_pd(a, b); }
  AMPSCOPE_INLINE Double low_half_as_double(Float v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
  AMPSCOPE_INLINE Double high_half_as_double(Float v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }
  AMPSCOPE_INLINE Float zero_float() { return _mm256_setzero_ps(); }
  AMPSCOPE_INLINE Double zero_double() { return _mm256_setzero_pd(); }
  AMPSCOPE_INLINE double sum_of_lanes(Double v) {
    const __m128d half = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
  }

 private:
  /// All ones in the lanes in which a > b.
  template <int width>
  AMPSCOPE_INLINE Vector greater_lanes(Vector a, Vector b) {
    const Vector sign = broadcast<width>(std::uint64_t{1} << (8 * width - 1));
    const Vector signed_a = bit_xor(a, sign);
    const Vector signed_b = bit_xor(b, sign);
    if constexpr (width == 1) return _mm256_cmpgt_epi8(signed_a, signed_b);
    if constexpr (width == 2) return _mm256_cmpgt_epi16(signed_a, signed_b);
    if constexpr (width == 4) return _mm256_cmpgt_epi32(signed_a, signed_b);
    return _mm256_cmpgt_epi64(signed_a, signed_b);
  }
  template <int width>
  AMPSCOPE_INLINE std::uint64_t lane_bits_of(Vector lanes) {
    if constexpr (width == 2) return _pext_u32(static_cast<unsigned>(_mm256_movemask_epi8(lanes)), 0x55555555U);
    if constexpr (width == 4) return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(lanes)));
  }
};

#undef AMPSCOPE_INLINE

}  // namespace

constinit const KernelPath avx2_path = vector_path<Avx2>("avx2");

}  // namespace ampscope::stats
