// The outer layer of a trace file: a header, then independent zstd frames.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace ampscope::trace {

/// The header is a skippable frame of zstd, so that zstd's own tools read a trace too: its magic, the size of the rest,
/// "ampscope", major and minor version. Longer ones of a later minor version are read by their size.
inline constexpr std::uint32_t header_magic = 0x184D2A5A;
inline constexpr std::string_view header_name = "ampscope";
inline constexpr std::size_t header_payload = header_name.size() + 4;
inline constexpr std::size_t header_size = 8 + header_payload;
inline constexpr std::size_t max_header_payload = 4096;

/// Largest content of a frame. The writer stays far below it; a reader refuses more before it allocates.
inline constexpr std::size_t max_frame_content = std::size_t{64} << 20;
/// Largest skippable frame behind the header. None is written today; later minor versions may.
inline constexpr std::size_t max_skippable_frame = std::size_t{1} << 20;

[[nodiscard]] std::array<char, header_size> make_header(int major, int minor) noexcept;

enum class HeaderState : std::uint8_t {
  good,    ///< the fixed part is there; the header may go on behind the input
  cut,     ///< the input ends inside the fixed part
  absent,  ///< the input is something else
};

struct Header {
  HeaderState state = HeaderState::absent;
  int major = 0;
  int minor = 0;
  std::size_t size = 0;  ///< where the first frame begins
};

/// Reads the header at the front of `input`, the first bytes of a file.
[[nodiscard]] Header read_header(std::string_view input) noexcept;

/// Compresses one frame after another.
class Compressor {
 public:
  Compressor();  ///< throws std::bad_alloc
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;
  Compressor(Compressor&&) = delete;
  Compressor& operator=(Compressor&&) = delete;

  /// Appends the frame of `content` to `out`. False: zstd failed, `error` says why.
  bool append_frame(std::string_view content, std::string& out, std::string& error);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// What a reader can tell from the first bytes of a frame.
enum class FrameState : std::uint8_t {
  complete,    ///< `size` bytes of input are one frame
  incomplete,  ///< more input is needed
  invalid,     ///< no frame that a trace may hold
};

struct FrameProbe {
  FrameState state = FrameState::invalid;
  bool skippable = false;
  std::uint64_t size = 0;     ///< of the whole frame in the file; known for a skippable one also when incomplete
  std::uint64_t content = 0;  ///< of the content, as the frame's header promises
};

/// Looks at the frame that starts at the front of `input`, which may hold less or more than that frame.
[[nodiscard]] FrameProbe probe_frame(std::string_view input, std::uint64_t max_content) noexcept;

/// Largest compressed size that a frame of `content` bytes can have.
[[nodiscard]] std::uint64_t max_frame_size(std::uint64_t content) noexcept;

/// Offset of the next place at or after `from` where a zstd frame may begin; npos when there is none.
[[nodiscard]] std::size_t find_frame(std::string_view input, std::size_t from) noexcept;

/// Decompresses whole frames and checks their checksums.
class Decompressor {
 public:
  Decompressor();  ///< throws std::bad_alloc
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  Decompressor(Decompressor&&) = delete;
  Decompressor& operator=(Decompressor&&) = delete;

  /// Content of one complete frame into `content`. False: it is damaged, `error` says how.
  bool read_frame(std::string_view frame, std::uint64_t content_size, std::string& content, std::string& error);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace ampscope::trace
