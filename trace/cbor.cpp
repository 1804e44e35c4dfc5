#include "trace/cbor.h"

#include <array>
#include <cmath>
#include <cstring>

namespace ampscope::trace::cbor {

namespace {

constexpr std::uint64_t float64_fraction = (std::uint64_t{1} << 52) - 1;
constexpr std::uint64_t float64_exponent = std::uint64_t{0x7FF} << 52;

/// A NaN's payload moves to the top of the wider or narrower fraction.
float narrow_nan(std::uint64_t bits) noexcept {
  const auto sign = static_cast<std::uint32_t>(bits >> 32) & 0x80000000U;
  return std::bit_cast<float>(sign | 0x7F800000U | static_cast<std::uint32_t>((bits & float64_fraction) >> 29));
}

double half_value(std::uint16_t bits) noexcept {
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  if (exponent == 31) {
    const std::uint64_t payload = static_cast<std::uint64_t>(fraction) << 42;
    return std::copysign(std::bit_cast<double>(float64_exponent | payload), sign);
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

}  // namespace

std::size_t array_element_size(std::uint64_t tag) noexcept {
  switch (static_cast<ArrayTag>(tag)) {
    case ArrayTag::uint8:
    case ArrayTag::sint8:
      return tag < 256 ? 1 : 0;
    case ArrayTag::uint16:
    case ArrayTag::sint16:
      return tag < 256 ? 2 : 0;
    case ArrayTag::uint32:
    case ArrayTag::sint32:
    case ArrayTag::float32:
      return tag < 256 ? 4 : 0;
    case ArrayTag::uint64:
    case ArrayTag::sint64:
    case ArrayTag::float64:
      return tag < 256 ? 8 : 0;
  }
  return 0;
}

double widen(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (!std::isnan(value)) return static_cast<double>(value);
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x80000000U) << 32;
  return std::bit_cast<double>(sign | float64_exponent | static_cast<std::uint64_t>(bits & 0x7FFFFFU) << 29);
}

bool fits_float32(double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool nan = (bits & float64_exponent) == float64_exponent && (bits & float64_fraction) != 0;
  // A finite double beyond float32's range has no float32: converting it would be undefined.
  if (!nan && std::isfinite(value) && std::fabs(value) > 0x1.fffffep127) return false;
  const float narrow = nan ? narrow_nan(bits) : static_cast<float>(value);
  return std::bit_cast<std::uint64_t>(widen(narrow)) == bits;
}

void Encoder::head(unsigned major, std::uint64_t value) {
  std::array<char, 9> bytes;
  const auto first = [&](unsigned info) { bytes[0] = static_cast<char>(major << 5 | info); };
  std::size_t size = 1;
  if (value < 24) {
    first(static_cast<unsigned>(value));
  } else if (value <= 0xFF) {
    first(24);
    size = 2;
  } else if (value <= 0xFFFF) {
    first(25);
    size = 3;
  } else if (value <= 0xFFFFFFFF) {
    first(26);
    size = 5;
  } else {
    first(27);
    size = 9;
  }
  for (std::size_t i = 1; i < size; ++i)
    bytes[i] = static_cast<char>(value >> (8 * (size - 1 - i)));
  out_.append(bytes.data(), size);
}

void Encoder::integer(std::int64_t value) {
  if (value >= 0) {
    head(0, static_cast<std::uint64_t>(value));
  } else {
    head(1, ~static_cast<std::uint64_t>(value));
  }
}

void Encoder::float32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::array<char, 5> bytes = {static_cast<char>(0xFA), static_cast<char>(bits >> 24),
                                     static_cast<char>(bits >> 16), static_cast<char>(bits >> 8),
                                     static_cast<char>(bits)};
  out_.append(bytes.data(), bytes.size());
}

void Encoder::float64(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (fits_float32(value)) {
    float32(std::isnan(value) ? narrow_nan(bits) : static_cast<float>(value));
    return;
  }
  std::array<char, 9> bytes;
  bytes[0] = static_cast<char>(0xFB);
  for (std::size_t i = 0; i < 8; ++i)
    bytes[1 + i] = static_cast<char>(bits >> (56 - 8 * i));
  out_.append(bytes.data(), bytes.size());
}

void Encoder::text(std::string_view value) {
  head(is_utf8(value) ? 3 : 2, value.size());
  out_.append(value);
}

void Encoder::typed_array(ArrayTag tag, const void* data, std::size_t bytes) {
  head(6, static_cast<std::uint64_t>(tag));
  head(2, bytes);
  if (bytes != 0) out_.append(static_cast<const char*>(data), bytes);
}

std::size_t Encoder::begin_map() {
  out_.push_back(static_cast<char>(0xB8));
  out_.push_back(0);
  return out_.size() - 1;
}

bool is_utf8(std::string_view text) noexcept {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* const end = at + text.size();
  while (at < end) {
    if (*at < 0x80) {
      ++at;
      continue;
    }
    // Lengths and the bounds of the second byte: Unicode standard, table 3-7 (no overlong forms, no surrogates).
    int more = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
    if (*at >= 0xC2 && *at <= 0xDF) {
      more = 1;
    } else if (*at >= 0xE0 && *at <= 0xEF) {
      more = 2;
      if (*at == 0xE0) low = 0xA0;
      if (*at == 0xED) high = 0x9F;
    } else if (*at >= 0xF0 && *at <= 0xF4) {
      more = 3;
      if (*at == 0xF0) low = 0x90;
      if (*at == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (end - at <= more) return false;
    if (at[1] < low || at[1] > high) return false;
    for (int i = 2; i <= more; ++i) {
      if (at[i] < 0x80 || at[i] > 0xBF) return false;
    }
    at += more + 1;
  }
  return true;
}

std::optional<Item> Decoder::next() noexcept {
  if (at_end()) return std::nullopt;
  const auto first = static_cast<unsigned char>(input_[position_]);
  const unsigned major = first >> 5;
  const unsigned info = first & 0x1FU;
  std::uint64_t value = info;
  std::size_t size = 1;
  if (info >= 28) return std::nullopt;  // reserved, or an indefinite length
  if (info >= 24) {
    const std::size_t more = std::size_t{1} << (info - 24);
    if (input_.size() - position_ - 1 < more) return std::nullopt;
    value = 0;
    for (std::size_t i = 1; i <= more; ++i)
      value = value << 8 | static_cast<unsigned char>(input_[position_ + i]);
    size += more;
  }
  Item item;
  item.value = value;
  const std::size_t left = input_.size() - position_ - size;
  switch (major) {
    case 0:
      item.type = Type::unsigned_integer;
      break;
    case 1:
      item.type = Type::negative_integer;
      break;
    case 2:
    case 3:
      if (value > left) return std::nullopt;
      item.type = major == 2 ? Type::bytes : Type::text;
      item.string = input_.substr(position_ + size, value);
      size += value;
      break;
    case 4:
      if (value > left) return std::nullopt;  // every element takes a byte at least
      item.type = Type::array;
      break;
    case 5:
      if (value > left / 2) return std::nullopt;
      item.type = Type::map;
      break;
    case 6:
      item.type = Type::tag;
      break;
    default:
      item.type = info >= 25 ? Type::floating : Type::simple;
      if (info >= 25) item.float_bits = 8 << (info - 24);
      break;
  }
  position_ += size;
  return item;
}

std::optional<std::string_view> Decoder::whole(int depth) noexcept {
  constexpr int most = 64;
  std::array<std::uint64_t, most> open{};  // items still to come at each level
  const int limit = depth < most ? depth : most - 1;
  const std::size_t begin = position_;
  int level = 0;
  open[0] = 1;
  while (true) {
    while (open[static_cast<std::size_t>(level)] == 0) {
      if (level == 0) return input_.substr(begin, position_ - begin);
      --level;
    }
    --open[static_cast<std::size_t>(level)];
    const auto item = next();
    if (!item) return std::nullopt;
    std::uint64_t inside = 0;
    if (item->type == Type::array) inside = item->value;
    if (item->type == Type::map) inside = item->value * 2;
    if (item->type == Type::tag) inside = 1;
    if (inside != 0) {
      if (level == limit) return std::nullopt;
      open[static_cast<std::size_t>(++level)] = inside;
    }
  }
}

double float_value(const Item& item) noexcept {
  switch (item.float_bits) {
    case 16:
      return half_value(static_cast<std::uint16_t>(item.value));
    case 32:
      return widen(std::bit_cast<float>(static_cast<std::uint32_t>(item.value)));
    default:
      return std::bit_cast<double>(item.value);
  }
}

}  // namespace ampscope::trace::cbor
