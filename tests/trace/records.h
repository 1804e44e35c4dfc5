// Records for the tests: with every field set, random ones, and comparison bit for bit.
#pragma once

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "trace/schema.h"
#include "trace/trace.h"

namespace ampscope::trace::test {

using schema::Fields;
using schema::Range;

template <class T>
concept Record = Fields<T>::known;
template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// ---- comparison
// ------------------------------------------------------------------------------------------------------

template <Number T>
bool equal(T a, T b) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  } else {
    return a == b;
  }
}
inline bool equal(const std::string& a, const std::string& b) {
  return a == b;
}
inline bool equal(const ExponentHistogram& a, const ExponentHistogram& b) {
  return a == b;
}

inline bool equal(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  if (a.size() != b.size()) return false;
  for (auto at = a.begin(), other = b.begin(); at != a.end(); ++at, ++other) {
    if (at->first != other->first || !equal(at->second, other->second)) return false;
  }
  return true;
}

template <Record T>
bool equal(const T& a, const T& b);
bool equal(const ScalerUpdate& a, const ScalerUpdate& b);

template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equal(a[i], b[i])) return false;
  }
  return true;
}

template <class T>
struct FieldComparison {
  const T& a;
  const T& b;
  std::string different;  // name of the first field that differs
  template <class Member>
  void operator()(std::string_view name, Member member, Range /*range*/ = Range::any) {
    if (different.empty() && !equal(a.*member, b.*member)) different = name;
  }
};

/// Name of the first field in which the records differ; empty when there is none.
template <Record T>
std::string difference(const T& a, const T& b) {
  FieldComparison<T> comparison{a, b, {}};
  Fields<T>::visit(comparison);
  return comparison.different;
}

template <Record T>
bool equal(const T& a, const T& b) {
  return difference(a, b).empty();
}

/// The same for an update, whose table is that of a run of updates.
inline bool equal(const ScalerUpdate& a, const ScalerUpdate& b) {
  return equal(schema::ScalerRun{a, 0}, schema::ScalerRun{b, 0});
}

// ---- every field set
// -------------------------------------------------------------------------------------------------

/// Sets each field to another value than its default, and to another than any field before.
class Filler {
 public:
  template <class T, class Member>
  struct Setter;

  template <Record T>
  T make() {
    T record;
    fill(record, Range::any);
    return record;
  }

  template <Number T>
  void fill(T& value, Range range) {
    ++counter_;
    if constexpr (std::is_same_v<T, bool>) {
      value = !value;
    } else if constexpr (std::is_enum_v<T>) {
      const int last = static_cast<int>(schema::EnumTraits<T>::last);
      const int before = static_cast<int>(value);
      value = static_cast<T>(1 + static_cast<int>(counter_) % last);
      if (static_cast<int>(value) == before) value = static_cast<T>(before == last ? before - 1 : before + 1);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(counter_) + static_cast<T>(0.1);  // no float32 holds the double
    } else if (range == Range::id) {
      value = static_cast<T>(counter_ % 90);
    } else {
      value = static_cast<T>(counter_ + 1000);
    }
  }
  void fill(std::string& value, Range /*range*/) { value = "text " + std::to_string(++counter_); }
  void fill(std::map<std::string, double>& value, Range range) {
    double number = 0;
    fill(number, range);
    value = {{"first " + std::to_string(counter_), number}, {"second", -number}};
  }
  void fill(ExponentHistogram& value, Range /*range*/) {
    value.first = -static_cast<int>(++counter_ % 900);
    value.counts = {counter_, 0, counter_ << 32};
  }
  template <class T>
  void fill(std::vector<T>& value, Range range) {
    value.resize(2);
    for (auto& element : value)
      fill(element, range);
  }
  template <Record T>
  void fill(T& record, Range /*range*/) {
    const auto set = [&](std::string_view /*name*/, auto member, Range range = Range::any) {
      fill(record.*member, range);
    };
    Fields<T>::visit(set);
  }

 private:
  std::uint64_t counter_ = 0;
};

// ---- random
// ----------------------------------------------------------------------------------------------------------

/// Fills fields at random, with the extremes of their types, defaults and odd strings among them. Ids are none or below
/// `ids`.
class Random {
 public:
  Random(std::uint64_t seed, std::int64_t ids) : engine_(seed), ids_(ids) {}

  std::uint64_t bits() { return engine_(); }
  std::uint64_t below(std::uint64_t bound) { return bits() % bound; }

  template <Record T>
  T make() {
    T record;
    fill(record, Range::any);
    return record;
  }

  template <Number T>
  void fill(T& value, Range range) {
    if (below(4) == 0) return;  // keeps its default
    if constexpr (std::is_same_v<T, bool>) {
      value = below(2) == 1;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(below(static_cast<std::uint64_t>(schema::EnumTraits<T>::last) + 1));
    } else if constexpr (std::is_same_v<T, double>) {
      value = below(2) == 0 ? std::bit_cast<double>(bits()) : static_cast<double>(static_cast<int>(below(100)));
    } else if constexpr (std::is_same_v<T, float>) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(bits()));
    } else {
      value = integer<T>(range);
    }
  }
  void fill(std::string& value, Range /*range*/) {
    static const std::vector<std::string> odd = {
        "", "aten::mul", "naïve ∑ 𝛼", std::string("\xFF\xFE\0bytes", 8), "\xED\xA0\x80", std::string(300, 'x')};
    value = below(2) == 0 ? odd[below(odd.size())] : "name " + std::to_string(below(50));
  }
  void fill(std::map<std::string, double>& value, Range range) {
    for (std::uint64_t i = below(3); i > 0; --i) {
      std::string name;
      double number = 0;
      fill(name, range);
      fill(number, range);
      value[name] = number;
    }
  }
  void fill(ExponentHistogram& value, Range /*range*/) {
    for (std::uint64_t i = below(5); i > 0; --i) {
      const int exponent = static_cast<int>(below(schema::max_exponents)) + schema::min_exponent;
      value.add(below(3) == 0 ? exponent : exponent / 100, 1 + below(schema::max_count / 8));
    }
  }
  template <class T>
  void fill(std::vector<T>& value, Range range) {
    value.resize(below(4));
    for (auto& element : value)
      fill(element, range);
  }
  template <Record T>
  void fill(T& record, Range /*range*/) {
    const auto set = [&](std::string_view /*name*/, auto member, Range range = Range::any) {
      fill(record.*member, range);
    };
    Fields<T>::visit(set);
  }

 private:
  template <class T>
  T integer(Range range) {
    switch (range) {
      case Range::id:
        return static_cast<T>(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(ids_) + 1)) - 1);
      case Range::position:
        return static_cast<T>(width(static_cast<std::uint64_t>(schema::max_position)));
      case Range::count:
        return static_cast<T>(width(static_cast<std::uint64_t>(schema::max_count)));
      case Range::time:
        return static_cast<T>(width(static_cast<std::uint64_t>(schema::max_time)));
      case Range::any:
        break;
    }
    return static_cast<T>(bits() >> below(64));
  }
  /// Any number of bits up to those of `most`, so that every width of column occurs.
  std::uint64_t width(std::uint64_t most) { return (bits() >> below(64)) % (most + 1); }

  std::mt19937_64 engine_;
  std::int64_t ids_;
};

}  // namespace ampscope::trace::test
