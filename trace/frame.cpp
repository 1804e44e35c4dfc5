#include "trace/frame.h"

#include <algorithm>
#include <new>

#include <zstd.h>
#include <zstd_errors.h>

namespace ampscope::trace {

namespace {

constexpr int compression_level = 3;
constexpr std::string_view frame_magic = "\x28\xB5\x2F\xFD";

std::uint32_t little_endian_32(std::string_view bytes) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace

std::array<char, header_size> make_header(int major, int minor) noexcept {
  std::array<char, header_size> bytes{};
  std::size_t at = 0;
  const auto put = [&](std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      bytes[at++] = static_cast<char>(value >> (8 * i));
  };
  put(header_magic, 4);
  put(header_payload, 4);
  for (const char letter : header_name)
    bytes[at++] = letter;
  put(static_cast<std::uint64_t>(major), 2);
  put(static_cast<std::uint64_t>(minor), 2);
  return bytes;
}

Header read_header(std::string_view input) noexcept {
  Header header;
  const auto expected = make_header(0, 0);
  const std::string_view fixed(expected.data(), expected.size() - 4);
  // The size in bytes 4 to 7 may be another one, the rest of the fixed part may not.
  for (std::size_t i = 0; i < std::min(input.size(), fixed.size()); ++i) {
    if ((i < 4 || i >= 8) && input[i] != fixed[i]) return header;
  }
  header.state = HeaderState::cut;
  if (input.size() < header_size) {
    if (input.empty()) header.state = HeaderState::absent;
    return header;
  }
  const std::uint32_t payload = little_endian_32(input.substr(4));
  if (payload < header_payload || payload > max_header_payload) {
    header.state = HeaderState::absent;
    return header;
  }
  const auto version = [&](std::size_t at) {
    return static_cast<unsigned char>(input[at]) | static_cast<unsigned char>(input[at + 1]) << 8;
  };
  header.major = version(16);
  header.minor = version(18);
  header.size = 8 + std::size_t{payload};
  header.state = header.major > 0 ? HeaderState::good : HeaderState::absent;
  return header;
}

struct Compressor::Context {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  Context() {
    if (zstd == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, compression_level);
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 1);
  }
  ~Context() { ZSTD_freeCCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

Compressor::Compressor() : context_(std::make_unique<Context>()) {}
Compressor::~Compressor() = default;

bool Compressor::append_frame(std::string_view content, std::string& out, std::string& error) {
  const std::size_t begin = out.size();
  out.resize(begin + ZSTD_compressBound(content.size()));
  const std::size_t size =
      ZSTD_compress2(context_->zstd, out.data() + begin, out.size() - begin, content.data(), content.size());
  if (ZSTD_isError(size) != 0) {
    out.resize(begin);
    error = ZSTD_getErrorName(size);
    return false;
  }
  out.resize(begin + size);
  return true;
}

std::uint64_t max_frame_size(std::uint64_t content) noexcept {
  return ZSTD_compressBound(content) + 64;
}

FrameProbe probe_frame(std::string_view input, std::uint64_t max_content) noexcept {
  FrameProbe probe;
  if (input.size() < 4) {
    if (frame_magic.starts_with(input)) probe.state = FrameState::incomplete;
    return probe;
  }
  if ((little_endian_32(input) & 0xFFFFFFF0U) == ZSTD_MAGIC_SKIPPABLE_START) {
    probe.skippable = true;
    probe.state = FrameState::incomplete;
    if (input.size() < 8) return probe;
    probe.size = 8 + std::uint64_t{little_endian_32(input.substr(4))};
    if (input.size() >= probe.size) probe.state = FrameState::complete;
    if (probe.size > max_skippable_frame) probe.state = FrameState::invalid;
    return probe;
  }
  if (!input.starts_with(frame_magic)) return probe;
  if (input.size() < 5) {
    probe.state = FrameState::incomplete;
    return probe;
  }
  // Frame header descriptor, RFC 8878 section 3.1.1.1.1. Without a checksum a flipped bit would pass for data, so a
  // flag that says there is none is damage; a dictionary and the reserved bit are not ours either.
  const auto descriptor = static_cast<unsigned char>(input[4]);
  constexpr unsigned checksum = 0x04;
  constexpr unsigned reserved = 0x08;
  constexpr unsigned dictionary = 0x03;
  if ((descriptor & checksum) == 0 || (descriptor & (reserved | dictionary)) != 0) return probe;
  const unsigned long long content = ZSTD_getFrameContentSize(input.data(), input.size());
  if (content == ZSTD_CONTENTSIZE_ERROR) {
    if (input.size() < 18) probe.state = FrameState::incomplete;  // the longest frame header has 18 bytes
    return probe;
  }
  if (content == ZSTD_CONTENTSIZE_UNKNOWN || content > max_content) return probe;
  probe.content = content;
  // It walks from block to block, and not beyond what this frame can take.
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), max_frame_size(content)));
  const std::size_t size = ZSTD_findFrameCompressedSize(input.data(), most);
  if (ZSTD_isError(size) == 0) {
    probe.size = size;
    probe.state = FrameState::complete;
    return probe;
  }
  if (ZSTD_getErrorCode(size) == ZSTD_error_srcSize_wrong && input.size() < max_frame_size(content)) {
    probe.state = FrameState::incomplete;
  }
  return probe;
}

std::size_t find_frame(std::string_view input, std::size_t from) noexcept {
  return input.find(frame_magic, from);
}

struct Decompressor::Context {
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  Context() {
    if (zstd == nullptr) throw std::bad_alloc();
  }
  ~Context() { ZSTD_freeDCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

Decompressor::Decompressor() : context_(std::make_unique<Context>()) {}
Decompressor::~Decompressor() = default;

bool Decompressor::read_frame(std::string_view frame, std::uint64_t content_size, std::string& content,
                              std::string& error) {
  content.resize(content_size);
  const std::size_t size =
      ZSTD_decompressDCtx(context_->zstd, content.data(), content.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0) {
    error = ZSTD_getErrorName(size);
    return false;
  }
  if (size != content_size) {
    error = "its content is shorter than its header says";
    return false;
  }
  return true;
}

}  // namespace ampscope::trace
