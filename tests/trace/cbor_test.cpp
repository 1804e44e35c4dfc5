// Our CBOR against nlohmann's, which is another implementation, and against the examples of RFC 8949, appendix A.

#include "trace/cbor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include <gtest/gtest.h>

#include "trace/encode.h"

namespace ampscope::trace::cbor {
namespace {

using nlohmann::json;

json decoded(const std::string& bytes) {
  return json::from_cbor(bytes, true, true, json::cbor_tag_handler_t::store);
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values)
    out.push_back(static_cast<char>(value));
  return out;
}

template <class Write>
std::string encoded(const Write& write) {
  std::string out;
  Encoder encoder(out);
  write(encoder);
  return out;
}

const std::vector<std::uint64_t> edges = {0,     1,     23,         24,         255,     256,
                                          65535, 65536, 4294967295, 4294967296, 1 << 30, 0x7FFFFFFFFFFFFFFF};

TEST(Cbor, IntegersAsTheOtherImplementationWritesThem) {
  for (const auto value : edges) {
    const auto unsigned_reference = json::to_cbor(json(value));
    EXPECT_EQ(encoded([&](Encoder& e) { e.unsigned_integer(value); }),
              std::string(unsigned_reference.begin(), unsigned_reference.end()));
    for (const std::int64_t number :
         {static_cast<std::int64_t>(value), -static_cast<std::int64_t>(value), -1 - static_cast<std::int64_t>(value)}) {
      const auto reference = json::to_cbor(json(number));
      EXPECT_EQ(encoded([&](Encoder& e) { e.integer(number); }), std::string(reference.begin(), reference.end()))
          << number;
    }
  }
  EXPECT_EQ(encoded([](Encoder& e) { e.unsigned_integer(std::numeric_limits<std::uint64_t>::max()); }),
            bytes({0x1B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}));
}

TEST(Cbor, FloatsAreReadByTheOtherImplementation) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const auto value = i % 2 == 0 ? std::bit_cast<double>(random())
                                  : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    if (std::isnan(value)) continue;
    const std::string out = encoded([&](Encoder& e) { e.float64(value); });
    EXPECT_EQ(decoded(out).get<double>(), value);
    EXPECT_EQ(out.size(), static_cast<double>(static_cast<float>(value)) == value ? 5U : 9U) << value;
  }
}

TEST(Cbor, HalfFloatsOfTheStandard) {
  const auto half = [](int high, int low) {
    const std::string input = bytes({0xF9, high, low});
    return float_value(Decoder(input).next().value());
  };
  EXPECT_EQ(half(0x00, 0x00), 0.0);
  EXPECT_TRUE(std::signbit(half(0x80, 0x00)));
  EXPECT_EQ(half(0x3C, 0x00), 1.0);
  EXPECT_EQ(half(0x3E, 0x00), 1.5);
  EXPECT_EQ(half(0x7B, 0xFF), 65504.0);
  EXPECT_EQ(half(0x00, 0x01), 5.960464477539063e-8);
  EXPECT_EQ(half(0x04, 0x00), 0.00006103515625);
  EXPECT_EQ(half(0xC4, 0x00), -4.0);
  EXPECT_EQ(half(0x7C, 0x00), std::numeric_limits<double>::infinity());
  EXPECT_EQ(half(0xFC, 0x00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(half(0x7E, 0x00)));
}

TEST(Cbor, TextAndBytes) {
  EXPECT_EQ(encoded([](Encoder& e) { e.text("IETF"); }), bytes({0x64, 0x49, 0x45, 0x54, 0x46}));
  EXPECT_EQ(encoded([](Encoder& e) { e.text("\xFF"); }), bytes({0x41, 0xFF}));
  EXPECT_EQ(encoded([](Encoder& e) { e.boolean(true); }), bytes({0xF5}));
}

TEST(Cbor, Utf8) {
  // Every code point is UTF-8 in its shortest form only.
  for (std::uint32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 37) {
    std::string text;
    if (code < 0x80) {
      text = {static_cast<char>(code)};
    } else if (code < 0x800) {
      text = {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
    } else if (code < 0x10000) {
      text = {static_cast<char>(0xE0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
              static_cast<char>(0x80 | (code & 0x3F))};
    } else {
      text = {static_cast<char>(0xF0 | code >> 18), static_cast<char>(0x80 | (code >> 12 & 0x3F)),
              static_cast<char>(0x80 | (code >> 6 & 0x3F)), static_cast<char>(0x80 | (code & 0x3F))};
    }
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    ASSERT_EQ(is_utf8(text), !surrogate) << std::hex << code;
    if (text.size() > 1) {
      ASSERT_FALSE(is_utf8(std::string_view(text).substr(0, text.size() - 1)));
    }
  }
  EXPECT_FALSE(is_utf8("\xC0\x80"));
  EXPECT_FALSE(is_utf8("\xE0\x80\x80"));
  EXPECT_FALSE(is_utf8("\xF0\x80\x80\x80"));
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));
  EXPECT_FALSE(is_utf8("a\x80"));
  EXPECT_TRUE(is_utf8(""));
}

TEST(Cbor, MalformedInputGivesNothing) {
  const std::vector<std::string> malformed = {
      bytes({0x18}),                                                  // a number without its bytes
      bytes({0x1B, 1, 2, 3}),                                         // cut inside it
      bytes({0x1C}),                                                  // reserved
      bytes({0x5F, 0x41, 1, 0xFF}),                                   // indefinite length
      bytes({0x44, 1, 2, 3}),                                         // a string longer than the input
      bytes({0x5B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}),  // 2^64 - 1 bytes
      bytes({0x9B, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}),  // 2^63 - 1 elements
      bytes({0xBB, 0x80, 0, 0, 0, 0, 0, 0, 0}),                       // 2^63 entries: twice that is 0
      bytes({0xA2, 1, 2}),                                            // an entry too few
      bytes({0xC1}),                                                  // a tag of nothing
      bytes({0xFF}),                                                  // a break on its own
      {},
  };
  for (const auto& input : malformed)
    EXPECT_FALSE(Decoder(input).whole(16)) << testing::PrintToString(input);
}

TEST(Cbor, DepthIsBounded) {
  const auto nested = [](std::size_t depth, int with) { return std::string(depth, static_cast<char>(with)) + '\0'; };
  for (const int with : {0x81, 0xC1}) {
    EXPECT_TRUE(Decoder(nested(16, with)).whole(16));
    EXPECT_FALSE(Decoder(nested(17, with)).whole(16));
    EXPECT_FALSE(Decoder(nested(1'000'000, with)).whole(1'000'000));
  }
}

TEST(Cbor, WholeItemsEndWhereTheNextBegins) {
  const json first = {{"a", {1, 2, {{"b", nullptr}}}}, {"c", 1.5}, {"d", json::binary({1, 2, 3})}};
  const json second = "next";
  std::string input;
  for (const auto& item : {first, second}) {
    const auto part = json::to_cbor(item);
    input.append(part.begin(), part.end());
  }
  Decoder decoder(input);
  EXPECT_EQ(decoded(std::string(decoder.whole(8).value())), first);
  EXPECT_EQ(decoded(std::string(decoder.whole(8).value())), second);
  EXPECT_TRUE(decoder.at_end());
}

// ---- the records as the other implementation reads them -------------------------------------------------------------

template <class T>
std::vector<T> numbers(const json& column, unsigned tag) {
  const auto& binary = column.get_binary();
  EXPECT_TRUE(binary.has_subtype());
  EXPECT_EQ(binary.subtype(), tag);
  std::vector<T> out(binary.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), binary.data(), binary.size());
  return out;
}

TEST(Wire, ASingleRecordIsItsKindAndItsFieldsThatDifferFromTheirDefault) {
  Site site;
  site.id = 7;
  site.kind = SiteKind::backward_node;
  site.phase = Phase::backward;
  site.name = "AddmmBackward0";
  site.source = {"/project/train.py", 48, ""};
  site.api_arguments = {{"max_norm", 1.0}};
  site.autocast = true;
  site.inputs.push_back({DType::float16, {64, 128}, "cpu", none, 3, false});
  site.scalars = {1e-8};
  std::string out;
  encode_record(out, site);
  EXPECT_EQ(decoded(out), json({"site",
                                {{"id", 7},
                                 {"kind", 1},
                                 {"phase", 1},
                                 {"name", "AddmmBackward0"},
                                 {"source", {{"file", "/project/train.py"}, {"line", 48}}},
                                 {"api_arguments", {{"max_norm", 1.0}}},
                                 {"autocast", true},
                                 {"inputs", {{{"dtype", 1}, {"shape", {64, 128}}, {"device", "cpu"}, {"producer", 3}}}},
                                 {"scalars", {1e-8}}}}));
}

TEST(Wire, ColumnsAreTypedArraysOrOneValue) {
  std::vector<GradientWindow> windows(3);
  for (std::size_t i = 0; i < 3; ++i) {
    windows[i].parameter = static_cast<std::int64_t>(i) * 200;
    windows[i].first_step = windows[i].last_step = 70'000;
    windows[i].weight = 0.1;
    windows[i].stats.count = 1000 * (i + 1);
    windows[i].stats.min = -1.5;
    windows[i].stats.max = i == 1 ? 0.1 : 2;
  }
  windows[0].stats.exponents.add(-3, 5);
  windows[2].stats.exponents.add(1, 7);
  windows[2].stats.exponents.add(3, 70'000);
  std::string out;
  encode_columns(out, std::span<const GradientWindow>(windows));
  const json record = decoded(out);
  ASSERT_EQ(record.at(0), "gradients");
  const json& fields = record.at(1);
  EXPECT_EQ(numbers<std::uint16_t>(fields.at("parameter"), 69), (std::vector<std::uint16_t>{0, 200, 400}));
  EXPECT_EQ(fields.at("first_step"), 70'000);
  EXPECT_EQ(fields.at("last_step"), 70'000);
  EXPECT_EQ(fields.at("weight"), 0.1);
  EXPECT_EQ(numbers<std::uint16_t>(fields.at("stats.count"), 69), (std::vector<std::uint16_t>{1000, 2000, 3000}));
  EXPECT_EQ(fields.at("stats.min"), -1.5);
  EXPECT_EQ(numbers<double>(fields.at("stats.max"), 86), (std::vector<double>{2, 0.1, 2}));
  EXPECT_EQ(numbers<std::int8_t>(fields.at("stats.exponents.first"), 72), (std::vector<std::int8_t>{-3, 0, 1}));
  EXPECT_EQ(numbers<std::uint8_t>(fields.at("stats.exponents.size"), 64), (std::vector<std::uint8_t>{1, 0, 3}));
  EXPECT_EQ(numbers<std::uint32_t>(fields.at("stats.exponents.counts"), 70),
            (std::vector<std::uint32_t>{5, 7, 0, 70'000}));
  EXPECT_EQ(fields.size(), 10U);  // nothing else: the rest is at its default
}

TEST(Wire, TheKeyColumnIsNeverShortened) {
  const std::vector<NonfiniteGradient> rows(4);
  std::string out;
  encode_columns(out, std::span<const NonfiniteGradient>(rows));
  const json record = decoded(out);
  EXPECT_EQ(numbers<std::uint8_t>(record.at(1).at("step"), 64).size(), 4U);
  EXPECT_EQ(record.at(1).size(), 1U);
}

TEST(Wire, TextColumnsAreADictionary) {
  std::vector<SeriesPoint> points(3);
  points[0].name = points[2].name = "loss";
  points[1].name = "lr";
  std::string out;
  encode_columns(out, std::span<const SeriesPoint>(points));
  const json names = decoded(out).at(1).at("name");
  EXPECT_EQ(names.at(0), json({"loss", "lr"}));
  EXPECT_EQ(numbers<std::uint8_t>(names.at(1), 64), (std::vector<std::uint8_t>{0, 1, 0}));
}

TEST(Wire, EventsAreColumnsInsideTheirPattern) {
  StepPattern pattern;
  pattern.id = 2;
  pattern.events = {{EventKind::scale_loss, 0, 5, event_flag::autocast, 0, 0},
                    {EventKind::optimizer_step, 0, none, 0, 0, 0}};
  std::string out;
  encode_record(out, pattern);
  const json events = decoded(out).at(1).at("events");
  EXPECT_EQ(numbers<std::uint8_t>(events.at("kind"), 64), (std::vector<std::uint8_t>{0, 6}));
  EXPECT_EQ(events.at("object"), 0);
  EXPECT_EQ(numbers<std::int8_t>(events.at("site"), 72), (std::vector<std::int8_t>{5, -1}));
}

}  // namespace
}  // namespace ampscope::trace::cbor
