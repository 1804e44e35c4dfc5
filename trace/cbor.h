// The part of CBOR (RFC 8949) that a trace consists of, and the typed arrays of RFC 8746.
//
// Not nlohmann's: it builds a tree with an allocation a value, which costs the training process too much on the writing
// side, and on the reading side its recursion and its memory are not bounded by anything but the input.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ampscope::trace::cbor {

static_assert(std::endian::native == std::endian::little, "typed arrays are stored as they lie in memory");

/// Tags of RFC 8746 for arrays of little-endian numbers.
enum class ArrayTag : std::uint8_t {
  uint8 = 64,
  uint16 = 69,
  uint32 = 70,
  uint64 = 71,
  sint8 = 72,
  sint16 = 77,
  sint32 = 78,
  sint64 = 79,
  float32 = 85,
  float64 = 86,
};

/// Bytes of one element; 0 for a tag that is none of ours.
[[nodiscard]] std::size_t array_element_size(std::uint64_t tag) noexcept;

/// Appends items to a string, integers and lengths in their shortest form. Throws std::bad_alloc.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void unsigned_integer(std::uint64_t value) { head(0, value); }
  void integer(std::int64_t value);
  void boolean(bool value) { out_.push_back(static_cast<char>(value ? 0xF5 : 0xF4)); }
  /// Four bytes, all bits kept.
  void float32(float value);
  /// Four bytes where they hold every bit of the value, else eight.
  void float64(double value);
  /// A text string; a byte string where `value` is not UTF-8, for a path may be anything.
  void text(std::string_view value);
  void array(std::uint64_t size) { head(4, size); }
  /// `bytes` bytes at `data` as a typed array.
  void typed_array(ArrayTag tag, const void* data, std::size_t bytes);

  /// A map of at most 255 entries whose number is known at its end: end_map takes what begin_map returned.
  [[nodiscard]] std::size_t begin_map();
  void end_map(std::size_t begin, std::size_t entries) { out_[begin] = static_cast<char>(entries); }
  void map(std::uint64_t entries) { head(5, entries); }

 private:
  void head(unsigned major, std::uint64_t value);
  std::string& out_;
};

/// Whether the double has a float32 with the same value and, if NaN, the same payload.
[[nodiscard]] bool fits_float32(double value) noexcept;
[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

enum class Type : std::uint8_t { unsigned_integer, negative_integer, bytes, text, array, map, tag, simple, floating };

/// The head of an item and, for strings, its content.
struct Item {
  Type type = Type::simple;
  std::uint64_t value = 0;  ///< the number; -1 - value for a negative one; elements, entries, tag; bits of a float
  int float_bits = 0;       ///< 16, 32 or 64 for a float
  std::string_view string;  ///< of bytes and text; points into the input
};

/// Takes items from the front of a buffer. Reads nothing outside it, allocates nothing, never recurses.
/// Indefinite lengths are not part of the format.
class Decoder {
 public:
  explicit Decoder(std::string_view input) : input_(input) {}

  /// The next head; nothing when the input ends or breaks the rules. Elements of an array, entries of a map and the
  /// content of a tag follow as items of their own.
  [[nodiscard]] std::optional<Item> next() noexcept;
  /// The bytes of the next item with all that it contains; nothing when it is malformed or deeper than `depth`.
  [[nodiscard]] std::optional<std::string_view> whole(int depth) noexcept;

  [[nodiscard]] bool at_end() const noexcept { return position_ == input_.size(); }
  [[nodiscard]] std::size_t position() const noexcept { return position_; }

 private:
  std::string_view input_;
  std::size_t position_ = 0;
};

/// Value of a float item; float16 and float32 are widened, NaN payloads kept.
[[nodiscard]] double float_value(const Item& item) noexcept;

/// The float64 of a float32 with the payload of a NaN kept: the processor's conversion makes a signalling NaN quiet.
[[nodiscard]] double widen(float value) noexcept;

}  // namespace ampscope::trace::cbor
