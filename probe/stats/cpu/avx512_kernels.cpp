// The kernels in AVX-512 (F, BW, DQ, VL; with BMI2, FMA and F16C): Skylake-SP and later, Zen 4 and later.
// This file alone is compiled for those instructions; see vector_scan.h on how its code stays inside it.
#include <immintrin.h>

#include "probe/stats/cpu/vector_paths.h"

namespace ampscope::stats {

namespace {

#define AMPSCOPE_INLINE [[gnu::always_inline]] static inline

struct Avx512 {
  using Vector = __m512i;
  using Float = __m512;
  using Double = __m512d;

  AMPSCOPE_INLINE Vector load(const void* at) { return _mm512_loadu_si512(at); }
  AMPSCOPE_INLINE void store(void* to, Vector v) { _mm512_storeu_si512(to, v); }
  AMPSCOPE_INLINE Vector zero() { return _mm512_setzero_si512(); }
  AMPSCOPE_INLINE Vector ones() { return _mm512_set1_epi64(-1); }
  template <int width>
  AMPSCOPE_INLINE Vector broadcast(std::uint64_t bits) {
    if constexpr (width == 1) return _mm512_set1_epi8(static_cast<char>(bits));
    if constexpr (width == 2) return _mm512_set1_epi16(static_cast<short>(bits));
    if constexpr (width == 4) return _mm512_set1_epi32(static_cast<int>(bits));
    return _mm512_set1_epi64(static_cast<long long>(bits));
  }
  AMPSCOPE_INLINE Vector bit_and(Vector a, Vector b) { return _mm512_and_si512(a, b); }
  AMPSCOPE_INLINE Vector bit_or(Vector a, Vector b) { return _mm512_or_si512(a, b); }
  AMPSCOPE_INLINE Vector bit_xor(Vector a, Vector b) { return _mm512_xor_si512(a, b); }
  AMPSCOPE_INLINE bool is_zero(Vector v) { return _mm512_test_epi64_mask(v, v) == 0; }
  AMPSCOPE_INLINE void full_adder(Vector& sum, Vector a, Vector b, Vector& carry) {
    const Vector old = sum;
    sum = _mm512_ternarylogic_epi64(old, a, b, 0x96);
    carry = _mm512_ternarylogic_epi64(old, a, b, 0xe8);
  }

  template <int width>
  AMPSCOPE_INLINE Vector add(Vector a, Vector b) {
    if constexpr (width == 1) return _mm512_add_epi8(a, b);
    if constexpr (width == 2) return _mm512_add_epi16(a, b);
    if constexpr (width == 4) return _mm512_add_epi32(a, b);
    return _mm512_add_epi64(a, b);
  }
  template <int width>
  AMPSCOPE_INLINE Vector max_signed(Vector a, Vector b) {
    if constexpr (width == 2) return _mm512_max_epi16(a, b);
    if constexpr (width == 4) return _mm512_max_epi32(a, b);
    return _mm512_max_epi64(a, b);
  }
  template <int width>
  AMPSCOPE_INLINE Vector max_unsigned(Vector a, Vector b) {
    if constexpr (width == 1) return _mm512_max_epu8(a, b);
    if constexpr (width == 2) return _mm512_max_epu16(a, b);
    if constexpr (width == 4) return _mm512_max_epu32(a, b);
    return _mm512_max_epu64(a, b);
  }
  template <int width>
  AMPSCOPE_INLINE Vector min_unsigned(Vector a, Vector b) {
    if constexpr (width == 2) return _mm512_min_epu16(a, b);
    if constexpr (width == 4) return _mm512_min_epu32(a, b);
    return _mm512_min_epu64(a, b);
  }
  template <int width>
  AMPSCOPE_INLINE bool any_greater_signed(Vector a, Vector b) {
    if constexpr (width == 2) return _mm512_cmpgt_epi16_mask(a, b) != 0;
    if constexpr (width == 4) return _mm512_cmpgt_epi32_mask(a, b) != 0;
    return _mm512_cmpgt_epi64_mask(a, b) != 0;
  }
  /// A bit for each lane in which a > b.
  template <int width>
  AMPSCOPE_INLINE std::uint64_t greater_unsigned(Vector a, Vector b) {
    return integer(greater_mask<width>(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE std::uint64_t equal(Vector a, Vector b) {
    if constexpr (width == 2) return integer(_mm512_cmpeq_epi16_mask(a, b));
    if constexpr (width == 4) return integer(_mm512_cmpeq_epi32_mask(a, b));
    return integer(_mm512_cmpeq_epi64_mask(a, b));
  }
  template <int width>
  AMPSCOPE_INLINE bool any_greater_unsigned(Vector a, Vector b) {
    return greater_mask<width>(a, b) != 0;
  }
  template <int width>
  AMPSCOPE_INLINE bool any_zero(Vector v) {
    if constexpr (width == 2) return _mm512_testn_epi16_mask(v, v) != 0;
    if constexpr (width == 4) return _mm512_testn_epi32_mask(v, v) != 0;
    return _mm512_testn_epi64_mask(v, v) != 0;
  }
  /// `a` with zeros in the lanes whose value is above `bound`, compared by their magnitude.
  template <int width>
  AMPSCOPE_INLINE Vector keep_up_to(Vector a, Vector magnitude, Vector bound) {
    if constexpr (width == 1) return _mm512_maskz_mov_epi8(_mm512_cmple_epu8_mask(magnitude, bound), a);
    if constexpr (width == 2) return _mm512_maskz_mov_epi16(_mm512_cmple_epu16_mask(magnitude, bound), a);
    if constexpr (width == 4) return _mm512_maskz_mov_epi32(_mm512_cmple_epu32_mask(magnitude, bound), a);
    return _mm512_maskz_mov_epi64(_mm512_cmple_epu64_mask(magnitude, bound), a);
  }

  /// Magnitudes of an fp8 format whose only NaN has the bits of minus zero; of NaN: all ones.
  AMPSCOPE_INLINE Vector unsigned_zero_magnitude(Vector bits) {
    const __mmask64 nan = _mm512_cmpeq_epi8_mask(bits, broadcast<1>(0x80));
    return _mm512_mask_mov_epi8(_mm512_and_si512(bits, broadcast<1>(0x7f)), nan, ones());
  }

  /// Counts the lanes that are zero but for bits outside the mask.
  template <int width>
  class ZeroCounter {
   public:
    [[gnu::always_inline]] inline void add(Vector v, Vector mask) {
      if constexpr (width == 2) count_ += popcount(integer(_mm512_testn_epi16_mask(v, mask)));
      if constexpr (width == 4) count_ += popcount(integer(_mm512_testn_epi32_mask(v, mask)));
      if constexpr (width == 8) count_ += popcount(integer(_mm512_testn_epi64_mask(v, mask)));
    }
    [[gnu::always_inline]] inline std::uint64_t total() const { return count_; }

   private:
    AMPSCOPE_INLINE std::uint64_t popcount(std::uint64_t mask) {
      return static_cast<std::uint64_t>(_mm_popcnt_u64(mask));
    }
    std::uint64_t count_ = 0;
  };

  /// In each lane of `lane_bits` the bit whose number is in the bits from `shift` on, modulo lane_bits.
  template <int lane_bits>
  AMPSCOPE_INLINE Vector one_hot(Vector v, int shift) {
    if constexpr (lane_bits == 32) {
      return _mm512_rolv_epi32(_mm512_set1_epi32(1), _mm512_srli_epi32(v, static_cast<unsigned>(shift)));
    }
    return _mm512_rolv_epi64(_mm512_set1_epi64(1), _mm512_srli_epi64(v, static_cast<unsigned>(shift)));
  }
  template <int lane_bits>
  AMPSCOPE_INLINE std::uint64_t or_of_lanes(Vector v) {
    const auto all = static_cast<std::uint64_t>(_mm512_reduce_or_epi64(v));
    return lane_bits == 32 ? (all | all >> 32) & 0xffffffffU : all;
  }
  template <int lane_bits>
  AMPSCOPE_INLINE int lanes_with_bit(Vector v, int bit) {
    if constexpr (lane_bits == 32) {
      return __builtin_popcountll(integer(_mm512_test_epi32_mask(v, _mm512_set1_epi32(static_cast<int>(1U << bit)))));
    }
    return __builtin_popcountll(
        integer(_mm512_test_epi64_mask(v, _mm512_set1_epi64(static_cast<long long>(1ULL << bit)))));
  }

  template <int width>
  AMPSCOPE_INLINE std::uint64_t reduce_max_unsigned(Vector v) {
    if constexpr (width == 1) {
      const Vector low = _mm512_and_si512(v, _mm512_set1_epi16(0xff));
      return reduce_max_unsigned<2>(_mm512_max_epu16(low, _mm512_srli_epi16(v, 8)));
    }
    if constexpr (width == 2) return 0xffffU ^ reduce_min_unsigned<2>(bit_xor(v, ones()));
    if constexpr (width == 4) return _mm512_reduce_max_epu32(v);
    return _mm512_reduce_max_epu64(v);
  }
  template <int width>
  AMPSCOPE_INLINE std::uint64_t reduce_min_unsigned(Vector v) {
    if constexpr (width == 2) {
      const __m256i half = _mm256_min_epu16(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
      const __m128i quarter = _mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
      return static_cast<std::uint16_t>(_mm_extract_epi16(_mm_minpos_epu16(quarter), 0));
    }
    if constexpr (width == 4) return _mm512_reduce_min_epu32(v);
    return _mm512_reduce_min_epu64(v);
  }
  template <int width>
  AMPSCOPE_INLINE std::uint64_t reduce_max_signed(Vector v) {
    constexpr std::uint64_t sign = std::uint64_t{1} << (8 * width - 1);
    return sign ^ reduce_max_unsigned<width>(bit_xor(v, broadcast<width>(sign)));
  }

  // vcvtph2ps does not heed "denormals are zero".
  AMPSCOPE_INLINE Float float16_as_float(const void* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
  }
  AMPSCOPE_INLINE Vector bits_of(Float v) { return _mm512_castps_si512(v); }
  AMPSCOPE_INLINE Float load_floats(const void* at) { return _mm512_loadu_ps(at); }
  AMPSCOPE_INLINE Double load_doubles(const void* at) { return _mm512_loadu_pd(at); }
  AMPSCOPE_INLINE Float even_bfloats(Vector v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); }
  AMPSCOPE_INLINE Float odd_bfloats(Vector v) {
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xffff0000U))));
  }
  AMPSCOPE_INLINE Float multiply(Float a, Float b) { return _mm512_mul_ps(a, b); }
  AMPSCOPE_INLINE Float multiply_add(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  AMPSCOPE_INLINE Double multiply_add(Double a, Double b, Double c) { return _mm512_fmadd_pd(a, b, c); }
  AMPSCOPE_INLINE Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  AMPSCOPE_INLINE Double add(Double a, Double b) { return _mm512_add_pd(a, b); }
  AMPSCOPE_INLINE Double low_half_as_double(Float v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
  AMPSCOPE_INLINE Double high_half_as_double(Float v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }
  AMPSCOPE_INLINE Float zero_float() { return _mm512_setzero_ps(); }
  AMPSCOPE_INLINE Double zero_double() { return _mm512_setzero_pd(); }
  AMPSCOPE_INLINE double sum_of_lanes(Double v) { return _mm512_reduce_add_pd(v); }

 private:
  template <int width>
  AMPSCOPE_INLINE auto greater_mask(Vector a, Vector b) {
    if constexpr (width == 1) {
      return _mm512_cmpgt_epu8_mask(a, b);
    } else if constexpr (width == 2) {
      return _mm512_cmpgt_epu16_mask(a, b);
    } else if constexpr (width == 4) {
      return _mm512_cmpgt_epu32_mask(a, b);
    } else {
      return _mm512_cmpgt_epu64_mask(a, b);
    }
  }

  // A mask as an integer. In assembly because GCC 12 may widen a mask of 32 lanes through memory, writing 32 bits and
  // reading 64.
  template <typename Mask>
  AMPSCOPE_INLINE std::uint64_t integer(Mask mask) {
    if constexpr (sizeof(Mask) == 8) {
      return mask;
    } else {
      std::uint32_t bits;
      if constexpr (sizeof(Mask) == 4) __asm__("kmovd %1, %0" : "=r"(bits) : "k"(mask));
      if constexpr (sizeof(Mask) == 2) __asm__("kmovw %1, %0" : "=r"(bits) : "k"(mask));
      if constexpr (sizeof(Mask) == 1) __asm__("kmovb %1, %0" : "=r"(bits) : "k"(mask));
      return bits;
    }
  }
};

#undef AMPSCOPE_INLINE

}  // namespace

constinit const KernelPath avx512_path = vector_path<Avx512>("avx512");

}  // namespace ampscope::stats
