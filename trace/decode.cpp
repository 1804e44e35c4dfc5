#include "trace/decode.h"

#include <cmath>
#include <concepts>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "trace/cbor.h"

namespace ampscope::trace {

namespace {

using cbor::ArrayTag;
using cbor::Decoder;
using cbor::Item;
using cbor::Type;
using schema::EnumTraits;
using schema::Fields;
using schema::Range;

template <class T>
concept Record = Fields<T>::known;

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Memory of a list node or a string that holds nothing.
constexpr std::uint64_t overhead = 64;

bool take(DecodeContext& context, std::uint64_t bytes) {
  if (context.memory.take(bytes)) return true;
  context.too_much = true;
  return false;
}

// ---- numbers
// ---------------------------------------------------------------------------------------------------------

std::pair<std::int64_t, std::int64_t> bounds(Range range) {
  switch (range) {
    case Range::id:
      return {none, schema::max_id};
    case Range::position:
      return {none, schema::max_position};
    case Range::count:
      return {0, schema::max_count};
    case Range::time:
      return {0, schema::max_time};
    case Range::any:
      break;
  }
  return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
}

float narrow(double value) {
  if (std::isfinite(value) && std::fabs(value) > 0x1.fffffep127)
    return std::copysign(HUGE_VALF, static_cast<float>(std::copysign(1.0, value)));
  return static_cast<float>(value);
}

/// Stores a number that was read as a V. A number outside the range leaves `out` at its default and is damage; a number
/// of the wrong sort is an error.
template <Number U, class V>
bool store(DecodeContext& context, U& out, V value, Range range) {
  if constexpr (std::is_floating_point_v<U>) {
    if constexpr (std::same_as<U, V>) {
      out = value;
    } else if constexpr (std::same_as<V, float>) {
      out = cbor::widen(value);
    } else if constexpr (std::same_as<V, double>) {
      out = narrow(value);
    } else {
      out = static_cast<U>(value);
    }
    return true;
  } else if constexpr (std::is_floating_point_v<V>) {
    return false;
  } else if constexpr (std::same_as<U, bool>) {
    out = value != V{};
    return true;
  } else if constexpr (std::same_as<V, bool>) {
    return store(context, out, static_cast<std::uint8_t>(value), range);
  } else if constexpr (std::is_enum_v<U>) {
    using Traits = EnumTraits<U>;
    if (std::cmp_less(value, 0)) {
      context.damaged = true;
    } else if (std::cmp_greater(value, static_cast<unsigned>(Traits::last))) {
      out = Traits::unknown;
    } else {
      out = static_cast<U>(value);
    }
    return true;
  } else {
    bool inside = std::in_range<U>(value);
    if (range != Range::any) {
      const auto [low, high] = bounds(range);
      inside = inside && std::cmp_greater_equal(value, low) && std::cmp_less_equal(value, high);
    }
    if (inside) {
      out = static_cast<U>(value);
    } else {
      context.damaged = true;
    }
    return true;
  }
}

/// The next item behind any tags: a tag that is not ours does not change what a value is.
std::optional<Item> untagged(Decoder& decoder) {
  auto item = decoder.next();
  while (item && item->type == Type::tag)
    item = decoder.next();
  return item;
}

template <Number U>
bool store_item(DecodeContext& context, U& out, const Item& item, Range range) {
  switch (item.type) {
    case Type::unsigned_integer:
      return store(context, out, item.value, range);
    case Type::negative_integer:
      if (item.value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        context.damaged = true;
        return true;
      }
      return store(context, out, static_cast<std::int64_t>(~item.value), range);
    case Type::floating:
      if (item.float_bits == 32) {
        return store(context, out, std::bit_cast<float>(static_cast<std::uint32_t>(item.value)), range);
      }
      return store(context, out, cbor::float_value(item), range);
    case Type::simple:
      if (item.value == 20 || item.value == 21) return store(context, out, item.value == 21, range);
      return false;
    default:
      return false;
  }
}

/// The elements of a typed array.
struct TypedArray {
  ArrayTag tag = ArrayTag::uint8;
  std::string_view bytes;
  std::size_t size = 0;

  static std::optional<TypedArray> from(std::string_view encoded) {
    Decoder decoder(encoded);
    const auto tag = decoder.next();
    if (!tag || tag->type != Type::tag) return std::nullopt;
    const std::size_t element = cbor::array_element_size(tag->value);
    if (element == 0) return std::nullopt;
    const auto content = decoder.next();
    if (!content || content->type != Type::bytes || content->string.size() % element != 0) return std::nullopt;
    return TypedArray{static_cast<ArrayTag>(tag->value), content->string, content->string.size() / element};
  }

  /// Calls visit(i, number) for i in [begin, end) until one returns false.
  template <class Visit>
  bool visit(std::size_t begin, std::size_t end, const Visit& visit) const {
    switch (tag) {
      case ArrayTag::uint8:
        return visit_as<std::uint8_t>(begin, end, visit);
      case ArrayTag::uint16:
        return visit_as<std::uint16_t>(begin, end, visit);
      case ArrayTag::uint32:
        return visit_as<std::uint32_t>(begin, end, visit);
      case ArrayTag::uint64:
        return visit_as<std::uint64_t>(begin, end, visit);
      case ArrayTag::sint8:
        return visit_as<std::uint8_t>(begin, end, [&visit](std::size_t i, std::uint8_t byte) {
          return visit(i, static_cast<std::int16_t>(byte < 0x80 ? byte : byte - 0x100));
        });
      case ArrayTag::sint16:
        return visit_as<std::int16_t>(begin, end, visit);
      case ArrayTag::sint32:
        return visit_as<std::int32_t>(begin, end, visit);
      case ArrayTag::sint64:
        return visit_as<std::int64_t>(begin, end, visit);
      case ArrayTag::float32:
        return visit_as<float>(begin, end, visit);
      case ArrayTag::float64:
        return visit_as<double>(begin, end, visit);
    }
    return false;
  }

 private:
  template <class Stored, class Visit>
  bool visit_as(std::size_t begin, std::size_t end, const Visit& visit) const {
    for (std::size_t i = begin; i < end; ++i) {
      Stored value;
      std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
      if (!visit(i, value)) return false;
    }
    return true;
  }
};

// ---- maps of fields
// --------------------------------------------------------------------------------------------------

/// The entries of a map, each value as its bytes. Of a key that stands twice the first counts.
class FieldMap {
 public:
  static std::optional<FieldMap> from(std::string_view encoded, int depth) {
    Decoder decoder(encoded);
    const auto head = untagged(decoder);
    if (!head || head->type != Type::map) return std::nullopt;
    FieldMap map;
    map.entries_.reserve(std::min<std::uint64_t>(head->value, 64));
    for (std::uint64_t i = 0; i < head->value; ++i) {
      const auto key = decoder.whole(depth);
      const auto value = decoder.whole(depth);
      if (!key || !value) return std::nullopt;
      const auto name = Decoder(*key).next();
      // Names that are none of ours, of any type, are skipped with their value.
      if (name && name->type == Type::text && map.entries_.size() < max_entries) {
        map.entries_.emplace_back(name->string, *value);
      }
    }
    return map;
  }

  /// Fields are written in the order of their table, so the one that is asked for next mostly stands next.
  std::optional<std::string_view> find(std::string_view name) {
    for (std::size_t tried = 0; tried < entries_.size(); ++tried) {
      const std::size_t at = (next_ + tried) % entries_.size();
      if (entries_[at].first == name) {
        next_ = at + 1;
        return entries_[at].second;
      }
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t max_entries = 4096;  // a lookup walks over all of them
  std::vector<std::pair<std::string_view, std::string_view>> entries_;
  std::size_t next_ = 0;
};

// ---- single values
// ---------------------------------------------------------------------------------------------------

template <Number U>
bool read(DecodeContext& context, std::string_view encoded, U& out, Range range) {
  Decoder decoder(encoded);
  const auto item = untagged(decoder);
  return item && store_item(context, out, *item, range);
}

bool read(DecodeContext& context, std::string_view encoded, std::string& out, Range /*range*/) {
  Decoder decoder(encoded);
  const auto item = untagged(decoder);
  if (!item || (item->type != Type::text && item->type != Type::bytes)) return false;
  if (item->string.size() > schema::max_text || !take(context, item->string.size())) return false;
  out.assign(item->string);
  return true;
}

bool read(DecodeContext& context, std::string_view encoded, std::map<std::string, double>& out, Range range) {
  Decoder decoder(encoded);
  const auto head = untagged(decoder);
  if (!head || head->type != Type::map) return false;
  for (std::uint64_t i = 0; i < head->value; ++i) {
    const auto key = decoder.whole(context.depth);
    const auto value = decoder.whole(context.depth);
    if (!key || !value || !take(context, 2 * overhead)) return false;
    std::string name;
    double number = 0;
    if (!read(context, *key, name, range) || !read(context, *value, number, range)) return false;
    out.emplace(std::move(name), number);
  }
  return true;
}

bool read(DecodeContext& context, std::string_view encoded, ExponentHistogram& out, Range range);

template <Record T>
bool read(DecodeContext& context, std::string_view encoded, T& out, Range range);

template <class T>
concept Columnar = std::same_as<T, ProtocolEvent> || std::same_as<T, RecentCall>;

template <class T>
bool read_columns(DecodeContext& context, std::string_view encoded, std::vector<T>& rows);

template <class T>
bool read(DecodeContext& context, std::string_view encoded, std::vector<T>& out, Range range) {
  if constexpr (Columnar<T>) {
    if (!read_columns(context, encoded, out)) return false;
    if constexpr (std::same_as<T, ProtocolEvent>) {
      std::erase_if(out, [](const ProtocolEvent& event) { return event.kind == schema::unknown_event; });
    }
    return true;
  } else {
    Decoder decoder(encoded);
    const auto head = untagged(decoder);
    if (!head || head->type != Type::array || !take(context, head->value * sizeof(T))) return false;
    out.resize(head->value);
    for (auto& element : out) {
      const auto item = decoder.whole(context.depth);
      if (!item || !read(context, *item, element, range)) return false;
    }
    return true;
  }
}

template <class T>
struct FieldReader {
  DecodeContext& context;
  FieldMap& map;
  T& record;
  bool good = true;

  template <class Member>
  void operator()(std::string_view name, Member member, Range range = Range::any) {
    if (!good) return;
    if (const auto encoded = map.find(name)) good = read(context, *encoded, record.*member, range);
  }
};

template <Record T>
bool read(DecodeContext& context, std::string_view encoded, T& out, Range /*range*/) {
  auto map = FieldMap::from(encoded, context.depth);
  if (!map) return false;
  FieldReader<T> reader{context, *map, out};
  Fields<T>::visit(reader);
  return reader.good;
}

// ---- histograms
// ------------------------------------------------------------------------------------------------------

/// Counts [begin, end) of `counts` as a histogram that starts at exponent `first`, in the form that ExponentHistogram
/// promises. Exponents that no float64 has are damage.
bool make_histogram(DecodeContext& context, std::int64_t first, const TypedArray& counts, std::size_t begin,
                    std::size_t end, ExponentHistogram& out) {
  const auto size = static_cast<std::int64_t>(end - begin);
  if (size == 0) return true;
  if (first < schema::min_exponent || size > schema::max_exponents || first + size - 1 > schema::max_exponent) {
    context.damaged = true;
    return true;
  }
  if (!take(context, static_cast<std::uint64_t>(size) * sizeof(std::uint64_t))) return false;
  std::vector<std::uint64_t> values(end - begin);
  const bool good = counts.visit(
      begin, end, [&](std::size_t i, auto value) { return store(context, values[i - begin], value, Range::count); });
  if (!good) return false;
  std::size_t low = 0;
  std::size_t high = values.size();
  while (low < high && values[low] == 0)
    ++low;
  while (high > low && values[high - 1] == 0)
    --high;
  if (low == high) return true;
  values.resize(high);
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(low));
  out.first = static_cast<int>(first) + static_cast<int>(low);
  out.counts = std::move(values);
  return true;
}

bool read(DecodeContext& context, std::string_view encoded, ExponentHistogram& out, Range /*range*/) {
  auto map = FieldMap::from(encoded, context.depth);
  if (!map) return false;
  const auto first = map->find("first");
  const auto counts = map->find("counts");
  if (!counts) return true;
  std::int64_t exponent = 0;
  if (first && !read(context, *first, exponent, Range::any)) return false;
  const auto array = TypedArray::from(*counts);
  return array && make_histogram(context, exponent, *array, 0, array->size, out);
}

// ---- columns
// ---------------------------------------------------------------------------------------------------------

template <class T, class Get>
struct ColumnReader {
  DecodeContext& context;
  FieldMap& map;
  std::size_t rows;
  Get get;
  std::string prefix;
  bool good = true;

  template <class Member>
  void operator()(std::string_view name, Member member, Range range = Range::any) {
    if (!good) return;
    const auto value = [this, member](std::size_t row) -> auto& { return get(row).*member; };
    using U = std::remove_cvref_t<decltype(value(0))>;
    const std::string path = prefix + std::string(name);
    if constexpr (std::same_as<U, TensorStats>) {
      ColumnReader<U, decltype(value)> inner{context, map, rows, value, path + "."};
      Fields<U>::visit(inner);
      good = inner.good;
    } else if constexpr (std::same_as<U, ExponentHistogram>) {
      good = histograms(path, value);
    } else if (const auto encoded = map.find(path)) {
      if constexpr (std::same_as<U, std::string>) {
        good = strings(*encoded, value);
      } else {
        good = numbers(*encoded, value, range);
      }
    }
  }

  template <class Value>
  bool numbers(std::string_view encoded, const Value& value, Range range) {
    if (const auto array = TypedArray::from(encoded)) {
      if (array->size != rows) return false;
      return array->visit(0, rows,
                          [&](std::size_t row, auto number) { return store(context, value(row), number, range); });
    }
    Decoder decoder(encoded);
    const auto item = untagged(decoder);
    if (!item) return false;
    for (std::size_t row = 0; row < rows; ++row) {
      if (!store_item(context, value(row), *item, range)) return false;
    }
    return true;
  }

  template <class Value>
  bool strings(std::string_view encoded, const Value& value) {
    Decoder decoder(encoded);
    const auto head = untagged(decoder);
    if (!head) return false;
    if (head->type == Type::text || head->type == Type::bytes) {
      std::string text;
      if (!read(context, encoded, text, Range::any) || !take(context, rows * text.size())) return false;
      for (std::size_t row = 0; row < rows; ++row)
        value(row) = text;
      return true;
    }
    if (head->type != Type::array || head->value != 2) return false;
    const auto list = decoder.whole(context.depth);
    const auto indices = decoder.whole(context.depth);
    if (!list || !indices) return false;
    std::vector<std::string> distinct;
    const auto array = TypedArray::from(*indices);
    if (!read(context, *list, distinct, Range::any) || !array || array->size != rows) return false;
    return array->visit(0, rows, [&](std::size_t row, auto number) {
      std::uint64_t index = distinct.size();
      if (!store(context, index, number, Range::any)) return false;
      if (index >= distinct.size()) {
        context.damaged = true;
        return true;
      }
      if (!take(context, distinct[index].size())) return false;
      value(row) = distinct[index];
      return true;
    });
  }

  template <class Value>
  bool histograms(const std::string& path, const Value& value) {
    const auto firsts = map.find(path + ".first");
    const auto sizes = map.find(path + ".size");
    const auto counts = map.find(path + ".counts");
    if (!counts) return true;
    if (!firsts || !sizes) return false;
    const auto first = TypedArray::from(*firsts);
    const auto size = TypedArray::from(*sizes);
    const auto count = TypedArray::from(*counts);
    if (!first || !size || !count || first->size != rows || size->size != rows) return false;
    std::size_t used = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      std::int64_t exponent = 0;
      std::uint64_t length = 0;
      const bool good_numbers = first->visit(row, row + 1, [&](std::size_t, auto number) {
        return store(context, exponent, number, Range::any);
      }) && size->visit(row, row + 1, [&](std::size_t, auto number) {
        return store(context, length, number, Range::count);
      });
      if (!good_numbers || length > count->size - used) return false;
      if (!make_histogram(context, exponent, *count, used, used + length, value(row))) return false;
      used += length;
    }
    return used == count->size;
  }
};

struct KeyName {
  std::string_view name;
  template <class Member>
  void operator()(std::string_view field, Member /*member*/, Range /*range*/ = Range::any) {
    if (name.empty()) name = field;
  }
};

template <class T>
bool read_columns(DecodeContext& context, std::string_view encoded, std::vector<T>& rows) {
  auto map = FieldMap::from(encoded, context.depth);
  if (!map) return false;
  KeyName key;
  Fields<T>::visit(key);
  const auto column = map->find(key.name);
  if (!column) return false;
  const auto array = TypedArray::from(*column);
  if (!array || !take(context, array->size * sizeof(T))) return false;
  std::vector<T> read_rows(array->size);
  const auto get = [&read_rows](std::size_t row) -> T& { return read_rows[row]; };
  ColumnReader<T, decltype(get)> reader{context, *map, read_rows.size(), get, {}};
  Fields<T>::visit(reader);
  if (!reader.good) return false;
  if (rows.empty()) {
    rows = std::move(read_rows);
  } else {
    rows.insert(rows.end(), std::make_move_iterator(read_rows.begin()), std::make_move_iterator(read_rows.end()));
  }
  return true;
}

}  // namespace

template <class T>
bool decode_record(std::string_view fields, DecodeContext& context, T& record) {
  return read(context, fields, record, Range::any);
}

template <class T>
bool decode_columns(std::string_view fields, DecodeContext& context, std::vector<T>& rows) {
  return read_columns(context, fields, rows);
}

template bool decode_record(std::string_view, DecodeContext&, RunInfo&);
template bool decode_record(std::string_view, DecodeContext&, Site&);
template bool decode_record(std::string_view, DecodeContext&, Parameter&);
template bool decode_record(std::string_view, DecodeContext&, Optimizer&);
template bool decode_record(std::string_view, DecodeContext&, Scaler&);
template bool decode_record(std::string_view, DecodeContext&, Schedule&);
template bool decode_record(std::string_view, DecodeContext&, StepPattern&);
template bool decode_record(std::string_view, DecodeContext&, NonfiniteEvent&);
template bool decode_record(std::string_view, DecodeContext&, FlightRecord&);
template bool decode_record(std::string_view, DecodeContext&, HiddenRegion&);
template bool decode_record(std::string_view, DecodeContext&, RoundTrip&);
template bool decode_record(std::string_view, DecodeContext&, RecorderStatus&);
template bool decode_record(std::string_view, DecodeContext&, RunEnd&);
template bool decode_record(std::string_view, DecodeContext&, ExitStatus&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<SiteTotals>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<StepRun>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<schema::ScalerRun>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<GradientWindow>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<NonfiniteGradient>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<SiteNumerics>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<RoundingErrors>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<WriteSample>&);
template bool decode_columns(std::string_view, DecodeContext&, std::vector<SeriesPoint>&);

}  // namespace ampscope::trace
