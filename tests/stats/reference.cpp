#include "tests/stats/reference.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>

#include "probe/stats/cpu/kernel_paths.h"

namespace ampscope::stats::testing {

namespace {

using Specials = Definition::Specials;

constexpr std::array<Definition, 8> all_definitions = {{
    {trace::DType::float16, "float16", 2, 5, 10, 15, Specials::ieee},
    {trace::DType::bfloat16, "bfloat16", 2, 8, 7, 127, Specials::ieee},
    {trace::DType::float32, "float32", 4, 8, 23, 127, Specials::ieee},
    {trace::DType::float64, "float64", 8, 11, 52, 1023, Specials::ieee},
    {trace::DType::float8_e4m3fn, "float8_e4m3fn", 1, 4, 3, 7, Specials::all_ones_is_nan},
    {trace::DType::float8_e5m2, "float8_e5m2", 1, 5, 2, 15, Specials::ieee},
    {trace::DType::float8_e4m3fnuz, "float8_e4m3fnuz", 1, 4, 3, 8, Specials::minus_zero_is_nan},
    {trace::DType::float8_e5m2fnuz, "float8_e5m2fnuz", 1, 5, 2, 16, Specials::minus_zero_is_nan},
}};

}  // namespace

std::span<const Definition> definitions() {
  return all_definitions;
}

const Definition& definition(trace::DType dtype) {
  for (const Definition& format : all_definitions) {
    if (format.dtype == dtype) return format;
  }
  return all_definitions.front();
}

double decode(const Definition& format, std::uint64_t bits) {
  const int width = 1 + format.exponent_bits + format.fraction_bits;
  const bool negative = (bits >> (width - 1)) != 0;
  const auto exponent = static_cast<int>((bits >> format.fraction_bits) & ((1U << format.exponent_bits) - 1));
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << format.fraction_bits) - 1);
  const int top = (1 << format.exponent_bits) - 1;
  const double sign = negative ? -1 : 1;
  switch (format.specials) {
    case Specials::ieee:
      if (exponent == top) return fraction == 0 ? sign * INFINITY : NAN;
      break;
    case Specials::all_ones_is_nan:
      if (exponent == top && fraction == (std::uint64_t{1} << format.fraction_bits) - 1) return NAN;
      break;
    case Specials::minus_zero_is_nan:
      if (negative && exponent == 0 && fraction == 0) return NAN;
      break;
  }
  const double significand = std::ldexp(static_cast<double>(fraction), -format.fraction_bits);
  if (exponent == 0) return sign * std::ldexp(significand, 1 - format.bias);
  return sign * std::ldexp(1 + significand, exponent - format.bias);
}

std::uint64_t pattern(const Definition& format, const void* data, std::int64_t index) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const unsigned char*>(data) + index * format.bytes,
              static_cast<std::size_t>(format.bytes));
  return bits;
}

trace::TensorStats reference_stats(const Definition& format, std::span<const std::uint64_t> patterns) {
  trace::TensorStats stats;
  std::map<int, std::uint64_t> exponents;
  long double squares = 0;
  for (const std::uint64_t bits : patterns) {
    const double value = decode(format, bits);
    ++stats.count;
    if (std::isnan(value)) {
      ++stats.nan;
      continue;
    }
    if (std::isinf(value)) {
      ++(value > 0 ? stats.positive_infinity : stats.negative_infinity);
      continue;
    }
    stats.min = std::fmin(stats.min, value);
    stats.max = std::fmax(stats.max, value);
    stats.absmax = std::fmax(stats.absmax, std::fabs(value));
    if (value == 0) {
      ++stats.zero;
      continue;
    }
    if (std::fabs(value) < std::ldexp(1.0, 1 - format.bias)) ++stats.subnormal;
    ++exponents[std::ilogb(value)];
    if (std::fabs(value) >= 0x1p500) {
      squares = INFINITY;
    } else if (std::fabs(value) >= 0x1p-500) {
      squares += static_cast<long double>(value) * value;
    }
  }
  stats.sum_squares = static_cast<double>(squares);
  if (!exponents.empty()) {
    stats.exponents.first = exponents.begin()->first;
    stats.exponents.counts.resize(static_cast<std::size_t>(exponents.rbegin()->first - stats.exponents.first + 1));
    for (const auto& [exponent, count] : exponents) {
      stats.exponents.counts[static_cast<std::size_t>(exponent - stats.exponents.first)] = count;
    }
  }
  return stats;
}

trace::TensorStats reference_stats(const Definition& format, const void* data, std::int64_t count) {
  std::vector<std::uint64_t> patterns;
  for (std::int64_t i = 0; i < count; ++i)
    patterns.push_back(pattern(format, data, i));
  return reference_stats(format, patterns);
}

Sentinel reference_sentinel(const Definition& format, std::span<const std::uint64_t> patterns) {
  Sentinel result;
  double absmax = 0;
  for (const std::uint64_t bits : patterns) {
    const double value = decode(format, bits);
    result.nonfinite |= !std::isfinite(value);
    absmax = std::fmax(absmax, std::fabs(value));  // fmax passes over NaN
  }
  result.absmax = static_cast<float>(absmax);
  // Towards zero.
  if (static_cast<double>(result.absmax) > absmax || (std::isinf(result.absmax) && !std::isinf(absmax))) {
    result.absmax = std::nextafterf(result.absmax, 0);
  }
  return result;
}

std::string difference(const trace::TensorStats& expected, const FlatStats& flat) {
  const trace::TensorStats got = to_tensor_stats(flat);
  std::ostringstream text;
  text.precision(17);
  const auto compare = [&text](const char* what, auto a, auto b) {
    if (a != b || std::signbit(static_cast<double>(a)) != std::signbit(static_cast<double>(b))) {
      text << what << " should be " << a << " and is " << b << "; ";
    }
  };
  compare("count", expected.count, got.count);
  compare("nan", expected.nan, got.nan);
  compare("positive_infinity", expected.positive_infinity, got.positive_infinity);
  compare("negative_infinity", expected.negative_infinity, got.negative_infinity);
  compare("zero", expected.zero, got.zero);
  compare("subnormal", expected.subnormal, got.subnormal);
  // The sign of a zero is not part of the result.
  compare("min", expected.min + 0.0, got.min);
  compare("max", expected.max + 0.0, got.max);
  compare("absmax", expected.absmax, got.absmax);
  if (!(expected.exponents == got.exponents)) {
    const int first = std::min(expected.exponents.first, got.exponents.first);
    const int last = std::max(expected.exponents.last(), got.exponents.last());
    const auto at = [](const trace::ExponentHistogram& histogram, int exponent) {
      return exponent < histogram.first || exponent > histogram.last()
                 ? 0
                 : histogram.counts[static_cast<std::size_t>(exponent - histogram.first)];
    };
    for (int exponent = first; exponent <= last; ++exponent) {
      const std::uint64_t a = at(expected.exponents, exponent);
      const std::uint64_t b = at(got.exponents, exponent);
      if (a != b) text << "2^" << exponent << " should be " << a << " and is " << b << "; ";
    }
    if (text.str().empty()) text << "the histogram has zeros at its ends; ";
  }
  // Half types: 2^-21, see square_sum.h.
  const bool equal = expected.sum_squares == got.sum_squares ||
                     std::fabs(got.sum_squares - expected.sum_squares) <= 0x1p-21 * expected.sum_squares;
  if (!equal) text << "sum_squares should be " << expected.sum_squares << " and is " << got.sum_squares << "; ";
  return text.str();
}

std::string difference(const Sentinel& expected, const Sentinel& got) {
  std::ostringstream text;
  if (expected.nonfinite != got.nonfinite) text << "nonfinite is " << got.nonfinite << "; ";
  if (expected.absmax != got.absmax) text << "absmax should be " << expected.absmax << " and is " << got.absmax << "; ";
  return text.str();
}

std::string difference(const trace::TensorStats& expected, const NonfiniteCount& got) {
  std::ostringstream text;
  if (expected.nan != got.nan || expected.positive_infinity != got.positive_infinity ||
      expected.negative_infinity != got.negative_infinity) {
    text << "should be " << expected.nan << "/" << expected.positive_infinity << "/" << expected.negative_infinity
         << " and is " << got.nan << "/" << got.positive_infinity << "/" << got.negative_infinity;
  }
  return text.str();
}

TensorView dense(trace::DType dtype, const void* data, std::int64_t count) {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.count = count;
  return view;
}

std::vector<const char*> path_names() {
  std::vector<const char*> names;
  for (const char* name : {"avx512", "avx2", "scalar"}) {
    if (find_path(name) != nullptr) names.push_back(name);
  }
  return names;
}

}  // namespace ampscope::stats::testing
