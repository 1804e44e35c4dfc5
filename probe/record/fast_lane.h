// A bounded queue of bytes from one training thread to the writer thread: no lock, no allocation, never blocks. When it
// is full a message is dropped and counted, so that silence is never read as health.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace ampscope::record {

enum class MessageKind : std::uint32_t {
  padding,
  gradient,
  numerics,
  scaler_update,
  series,
  step,
  nonfinite_gradient,
  rounding,
  write
};

struct MessageHeader {
  std::uint32_t size;  ///< with the header, a multiple of 8
  MessageKind kind;
};

class FastLane {  // NOLINT(clang-analyzer-optin.performance.Padding): each end on cache lines of its own
 public:
  /// `capacity` is rounded up to a power of two.
  explicit FastLane(std::size_t capacity) {
    while (size_ < capacity)
      size_ *= 2;
    // for_overwrite: pages are touched when they are first used, not here.
    bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_);
  }

  /// Producer. Copies the parts one behind the other. False when there is no room.
  bool push(MessageKind kind, std::span<const std::span<const std::byte>> parts) noexcept {
    std::size_t need = sizeof(MessageHeader);
    for (const auto& part : parts)
      need += part.size();
    need = (need + 7) & ~std::size_t{7};
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t tail = tail_.load(std::memory_order_acquire);
    std::size_t offset = head & (size_ - 1);
    // A message is contiguous, so the end of the buffer is padded away when it does not fit there.
    const std::size_t to_end = size_ - offset;
    const std::size_t pad = to_end < need ? to_end : 0;
    if (head - tail + need + pad > size_) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    if (pad) {
      write_header(offset, pad, MessageKind::padding);
      offset = 0;
    }
    write_header(offset, need, kind);
    std::size_t at = offset + sizeof(MessageHeader);
    for (const auto& part : parts) {
      if (!part.empty()) std::memcpy(&bytes_[at], part.data(), part.size());
      at += part.size();
    }
    head_.store(head + pad + need, std::memory_order_release);
    return true;
  }

  /// Consumer. Calls `handle(kind, payload)` for all messages that are there.
  template <typename Handle>
  void drain(Handle&& handle) {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    const std::uint64_t head = head_.load(std::memory_order_acquire);
    while (tail != head) {
      const std::size_t offset = tail & (size_ - 1);
      MessageHeader header;
      std::memcpy(&header, &bytes_[offset], sizeof header);
      if (header.kind != MessageKind::padding) {
        handle(header.kind, std::span<const std::byte>(&bytes_[offset + sizeof header], header.size - sizeof header));
      }
      tail += header.size;
      tail_.store(tail, std::memory_order_release);
    }
  }

  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t capacity() const noexcept { return size_; }
  /// Whether more than half is waiting: the producer then wakes the consumer.
  [[nodiscard]] bool crowded() const noexcept {
    return head_.load(std::memory_order_relaxed) - tail_.load(std::memory_order_relaxed) > size_ / 2;
  }

 private:
  void write_header(std::size_t offset, std::size_t size, MessageKind kind) noexcept {
    const MessageHeader header{static_cast<std::uint32_t>(size), kind};
    std::memcpy(&bytes_[offset], &header, sizeof header);
  }

  std::size_t size_ = 4096;
  std::unique_ptr<std::byte[]> bytes_;
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace ampscope::record
