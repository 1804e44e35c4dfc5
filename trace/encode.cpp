#include "trace/encode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "trace/cbor.h"

namespace ampscope::trace {

namespace {

using cbor::ArrayTag;
using cbor::Encoder;
using schema::Fields;
using schema::Range;

template <class T>
concept Record = Fields<T>::known;

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// ---- equality bit for bit: a field is left out only if reading gives back the very same -----------------------------

template <Number T>
bool same(T a, T b) {
  if constexpr (std::same_as<T, float>) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  } else if constexpr (std::same_as<T, double>) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  } else {
    return a == b;
  }
}

bool same(const std::string& a, const std::string& b) {
  return a == b;
}

bool same(const ExponentHistogram& a, const ExponentHistogram& b) {
  return a.empty() ? b.empty() : a == b;  // where there are no counts, `first` means nothing
}

// Defaults of lists and maps are empty, so nothing else needs comparing.
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.empty() && b.empty();
}

bool same(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  return a.empty() && b.empty();
}

template <class T>
struct Comparison {
  const T& a;
  const T& b;
  bool equal = true;
  template <class Member>
  void operator()(std::string_view name, Member member, Range range = Range::any);
};

template <Record T>
bool same(const T& a, const T& b) {
  Comparison<T> comparison{a, b};
  Fields<T>::visit(comparison);
  return comparison.equal;
}

template <class T>
template <class Member>
void Comparison<T>::operator()(std::string_view /*name*/, Member member, Range /*range*/) {
  if (equal) equal = same(a.*member, b.*member);
}

template <class T>
const T& default_of() {
  static const T value{};
  return value;
}

// ---- single values
// ---------------------------------------------------------------------------------------------------

std::string_view cut(std::string_view text) {
  if (text.size() <= schema::max_text) return text;
  std::size_t size = schema::max_text;
  // Not inside a character: continuation bytes are 10xxxxxx.
  while (size > schema::max_text - 4 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U)
    --size;
  return text.substr(0, size);
}

template <Number T>
void write(Encoder& encoder, T value) {
  if constexpr (std::same_as<T, float>) {
    encoder.float32(value);
  } else if constexpr (std::same_as<T, double>) {
    encoder.float64(value);
  } else if constexpr (std::same_as<T, bool>) {
    encoder.boolean(value);
  } else if constexpr (std::is_enum_v<T>) {
    encoder.unsigned_integer(static_cast<std::uint64_t>(value));
  } else if constexpr (std::is_unsigned_v<T>) {
    encoder.unsigned_integer(value);
  } else {
    encoder.integer(value);
  }
}

void write(Encoder& encoder, const std::string& value) {
  encoder.text(cut(value));
}

void write(Encoder& encoder, const std::map<std::string, double>& value) {
  encoder.map(value.size());
  for (const auto& [name, number] : value) {
    write(encoder, name);
    write(encoder, number);
  }
}

void write(Encoder& encoder, const ExponentHistogram& value);

template <Record T>
void write(Encoder& encoder, const T& value);

/// Events and recent calls are many and alike, so they are columns also where they are a field.
template <class T>
concept Columnar = std::same_as<T, ProtocolEvent> || std::same_as<T, RecentCall>;

template <class T>
void write_columns(Encoder& encoder, std::span<const T> rows);

template <class T>
void write(Encoder& encoder, const std::vector<T>& value) {
  if constexpr (Columnar<T>) {
    write_columns(encoder, std::span<const T>(value));
  } else {
    encoder.array(value.size());
    for (const auto& element : value)
      write(encoder, element);
  }
}

template <class T>
struct FieldWriter {
  Encoder& encoder;
  const T& record;
  std::size_t entries = 0;

  template <class Member>
  void operator()(std::string_view name, Member member, Range /*range*/ = Range::any) {
    if (same(record.*member, default_of<T>().*member)) return;
    encoder.text(name);
    write(encoder, record.*member);
    ++entries;
  }
};

template <Record T>
void write(Encoder& encoder, const T& value) {
  const std::size_t begin = encoder.begin_map();
  FieldWriter<T> writer{encoder, value};
  Fields<T>::visit(writer);
  encoder.end_map(begin, writer.entries);
}

// ---- columns
// ---------------------------------------------------------------------------------------------------------

template <class Stored, class Get>
void write_typed(Encoder& encoder, ArrayTag tag, std::size_t rows, const Get& get) {
  std::vector<Stored> stored(rows);
  for (std::size_t i = 0; i < rows; ++i)
    stored[i] = static_cast<Stored>(get(i));
  encoder.typed_array(tag, stored.data(), rows * sizeof(Stored));
}

/// A typed array of the narrowest type that holds every value exactly.
template <class Get>
void write_array(Encoder& encoder, std::size_t rows, const Get& get) {
  using T = std::remove_cvref_t<std::invoke_result_t<Get, std::size_t>>;
  if constexpr (std::same_as<T, float>) {
    write_typed<float>(encoder, ArrayTag::float32, rows, get);
  } else if constexpr (std::same_as<T, double>) {
    bool narrow = true;
    for (std::size_t i = 0; narrow && i < rows; ++i) {
      const double value = get(i);
      // A NaN may lose its payload in a conversion, so it keeps the column wide.
      narrow = !std::isnan(value) && cbor::fits_float32(value);
    }
    if (narrow) {
      write_typed<float>(encoder, ArrayTag::float32, rows, get);
    } else {
      write_typed<double>(encoder, ArrayTag::float64, rows, get);
    }
  } else if constexpr (std::is_enum_v<T> || std::same_as<T, bool>) {
    write_typed<std::uint8_t>(encoder, ArrayTag::uint8, rows, get);
  } else {
    T low = 0;
    T high = 0;
    for (std::size_t i = 0; i < rows; ++i) {
      const T value = get(i);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    const auto unsigned_high = static_cast<std::uint64_t>(high);
    const auto signed_within = [&](std::int64_t bound) {
      return std::cmp_greater_equal(low, -bound - 1) && std::cmp_less_equal(high, bound);
    };
    if (low == 0 && unsigned_high <= 0xFF) {
      write_typed<std::uint8_t>(encoder, ArrayTag::uint8, rows, get);
    } else if (low == 0 && unsigned_high <= 0xFFFF) {
      write_typed<std::uint16_t>(encoder, ArrayTag::uint16, rows, get);
    } else if (low == 0 && unsigned_high <= 0xFFFFFFFF) {
      write_typed<std::uint32_t>(encoder, ArrayTag::uint32, rows, get);
    } else if (low == 0) {
      write_typed<std::uint64_t>(encoder, ArrayTag::uint64, rows, get);
    } else if (signed_within(0x7F)) {
      write_typed<std::int8_t>(encoder, ArrayTag::sint8, rows, get);
    } else if (signed_within(0x7FFF)) {
      write_typed<std::int16_t>(encoder, ArrayTag::sint16, rows, get);
    } else if (signed_within(0x7FFFFFFF)) {
      write_typed<std::int32_t>(encoder, ArrayTag::sint32, rows, get);
    } else {
      write_typed<std::int64_t>(encoder, ArrayTag::sint64, rows, get);
    }
  }
}

template <class Get>
bool all_equal(std::size_t rows, const Get& get) {
  for (std::size_t i = 1; i < rows; ++i) {
    if (!same(get(i), get(0))) return false;
  }
  return true;
}

/// The columns of `rows` records; `get(i)` is record i, or the part of it that has the fields of T.
template <class T, class Get>
struct ColumnWriter {
  Encoder& encoder;
  std::size_t rows;
  Get get;
  std::string prefix;  // "stats." inside the statistics
  bool key;            // the next column is the key column, which gives the number of rows and is never shortened
  std::size_t entries = 0;

  template <class Member>
  void operator()(std::string_view name, Member member, Range /*range*/ = Range::any) {
    const auto value = [this, member](std::size_t row) -> decltype(auto) { return get(row).*member; };
    column(name, value, default_of<T>().*member);
  }

  template <class Value, Number U>
  void column(std::string_view name, const Value& value, U absent) {
    const bool shorten = !key && all_equal(rows, value);
    key = false;
    if (shorten && same(value(0), absent)) return;
    encoder.text(prefix + std::string(name));
    if (shorten) {
      write(encoder, value(0));
    } else {
      write_array(encoder, rows, [&](std::size_t row) { return U{value(row)}; });
    }
    ++entries;
  }

  /// Few distinct strings in many rows: the strings once, and an index a row.
  template <class Value>
  void column(std::string_view name, const Value& value, const std::string& absent) {
    const bool shorten = all_equal(rows, value);
    if (shorten && value(0) == absent) return;
    encoder.text(prefix + std::string(name));
    ++entries;
    if (shorten) {
      write(encoder, value(0));
      return;
    }
    std::unordered_map<std::string_view, std::uint32_t> index;
    std::vector<std::string_view> distinct;
    std::vector<std::uint32_t> indices(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto [at, added] = index.try_emplace(value(row), static_cast<std::uint32_t>(distinct.size()));
      if (added) distinct.push_back(value(row));
      indices[row] = at->second;
    }
    encoder.array(2);
    encoder.array(distinct.size());
    for (const auto text : distinct)
      encoder.text(cut(text));
    write_array(encoder, rows, [&](std::size_t row) { return indices[row]; });
  }

  template <class Value>
  void column(std::string_view name, const Value& value, const TensorStats& /*absent*/) {
    ColumnWriter<TensorStats, Value> inner{encoder, rows, value, prefix + std::string(name) + ".", false};
    Fields<TensorStats>::visit(inner);
    entries += inner.entries;
  }

  /// Every histogram's first exponent and length, and the counts of all of them end to end.
  template <class Value>
  void column(std::string_view name, const Value& value, const ExponentHistogram& /*absent*/) {
    const std::string path = prefix + std::string(name);
    std::size_t total = 0;
    for (std::size_t row = 0; row < rows; ++row)
      total += value(row).counts.size();
    if (total == 0) return;
    std::vector<std::uint64_t> counts;
    counts.reserve(total);
    for (std::size_t row = 0; row < rows; ++row) {
      counts.insert(counts.end(), value(row).counts.begin(), value(row).counts.end());
    }
    encoder.text(path + ".first");
    write_array(encoder, rows, [&](std::size_t row) { return value(row).empty() ? 0 : value(row).first; });
    encoder.text(path + ".size");
    write_array(encoder, rows, [&](std::size_t row) { return static_cast<std::uint64_t>(value(row).counts.size()); });
    encoder.text(path + ".counts");
    write_array(encoder, total, [&](std::size_t i) { return counts[i]; });
    entries += 3;
  }
};

template <class T>
void write_columns(Encoder& encoder, std::span<const T> rows) {
  const auto get = [rows](std::size_t row) -> const T& { return rows[row]; };
  const std::size_t begin = encoder.begin_map();
  ColumnWriter<T, decltype(get)> writer{encoder, rows.size(), get, {}, true};
  Fields<T>::visit(writer);
  encoder.end_map(begin, writer.entries);
}

void write(Encoder& encoder, const ExponentHistogram& value) {
  encoder.map(2);
  encoder.text("first");
  write(encoder, value.first);
  encoder.text("counts");
  write_array(encoder, value.counts.size(), [&](std::size_t i) { return value.counts[i]; });
}

template <class T>
Encoder begin_record(std::string& out) {
  Encoder encoder(out);
  encoder.array(2);
  encoder.text(Fields<T>::kind);
  return encoder;
}

}  // namespace

template <class T>
void encode_record(std::string& out, const T& record) {
  Encoder encoder = begin_record<T>(out);
  write(encoder, record);
}

template <class T>
void encode_columns(std::string& out, std::span<const T> rows) {
  Encoder encoder = begin_record<T>(out);
  write_columns(encoder, rows);
}

template void encode_record(std::string&, const RunInfo&);
template void encode_record(std::string&, const Site&);
template void encode_record(std::string&, const Parameter&);
template void encode_record(std::string&, const Optimizer&);
template void encode_record(std::string&, const Scaler&);
template void encode_record(std::string&, const Schedule&);
template void encode_record(std::string&, const StepPattern&);
template void encode_record(std::string&, const NonfiniteEvent&);
template void encode_record(std::string&, const FlightRecord&);
template void encode_record(std::string&, const HiddenRegion&);
template void encode_record(std::string&, const RoundTrip&);
template void encode_record(std::string&, const RecorderStatus&);
template void encode_record(std::string&, const RunEnd&);
template void encode_record(std::string&, const ExitStatus&);
template void encode_columns(std::string&, std::span<const SiteTotals>);
template void encode_columns(std::string&, std::span<const StepRun>);
template void encode_columns(std::string&, std::span<const schema::ScalerRun>);
template void encode_columns(std::string&, std::span<const GradientWindow>);
template void encode_columns(std::string&, std::span<const NonfiniteGradient>);
template void encode_columns(std::string&, std::span<const SiteNumerics>);
template void encode_columns(std::string&, std::span<const RoundingErrors>);
template void encode_columns(std::string&, std::span<const WriteSample>);
template void encode_columns(std::string&, std::span<const SeriesPoint>);

}  // namespace ampscope::trace
