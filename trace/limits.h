// What a reader gives to one trace at most, so that a hostile or broken file costs no more than its size warrants.
#pragma once

#include <cstdint>

namespace ampscope::trace {

struct ReadLimits {
  std::uint64_t frame_content = std::uint64_t{64} << 20;  ///< bytes of one decompressed frame
  /// Decompressed content and records in memory, each: at most memory_base + memory_per_byte × bytes of the file. Real
  /// traces need a tenth of it.
  std::uint64_t memory_base = std::uint64_t{64} << 20;
  std::uint64_t memory_per_byte = 1024;
  std::uint64_t scaler_updates = std::uint64_t{1} << 24;  ///< once expanded from their run-length code; 64 bytes each
  int depth = 16;                                         ///< of CBOR items inside one another
};

/// Bytes that may still be spent. What is spent is not given back: the bound is on the whole trace.
class Budget {
 public:
  Budget(std::uint64_t base, std::uint64_t per_byte) noexcept : allowed_(base), per_byte_(per_byte) {}

  /// `bytes` more of the file were read.
  void earn(std::uint64_t bytes) noexcept { allowed_ += bytes * per_byte_; }
  /// False: that is too much; nothing was taken.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept {
    if (bytes > allowed_ - spent_) return false;
    spent_ += bytes;
    return true;
  }

 private:
  std::uint64_t allowed_;
  std::uint64_t per_byte_;
  std::uint64_t spent_ = 0;
};

}  // namespace ampscope::trace
