// Small lossy tables from an address to what was last seen there. Read and written by all threads without a lock; an
// entry that was pushed out is as if it had never been seen.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "trace/model.h"

namespace ampscope::observe {

[[nodiscard]] inline std::uint64_t mix_address(std::uint64_t value) noexcept {
  value *= 0x9e3779b97f4a7c15ULL;
  return value ^ (value >> 29);
}

/// Which op last wrote the memory at an address.
class ProducerTable {
 public:
  struct Entry {
    std::int64_t site = trace::none;
    std::uint32_t clock = 0;  ///< op counter of the writing thread
    std::uint8_t thread = 0;
    bool known = false;
    bool nonfinite = false;  ///< it was looked at and held a NaN or an infinity
    bool checked = false;
    bool external = false;  ///< moved here from memory that no observed op wrote
    bool kept = false;      ///< changed in place, and what was changed is older than the step
    bool of_kept = false;   ///< a copy of such a tensor, or of one that is older itself
  };

  [[nodiscard]] Entry find(const void* address) const noexcept {
    const auto key = reinterpret_cast<std::uint64_t>(address);
    const Slot& slot = slots_[index(key)];
    if (slot.key.load(std::memory_order_relaxed) != key) return {};
    const std::uint64_t v = slot.value.load(std::memory_order_relaxed);
    Entry entry;
    entry.clock = static_cast<std::uint32_t>(v);
    entry.thread = static_cast<std::uint8_t>(v >> 32);
    entry.nonfinite = (v >> 40) & 1;
    entry.checked = (v >> 41) & 1;
    entry.external = (v >> 42) & 1;
    entry.kept = (v >> 43) & 1;
    entry.of_kept = (v >> 44) & 1;
    entry.site = static_cast<std::int64_t>(v >> 45) - 1;
    entry.known = true;
    return entry;
  }

  void put(const void* address, const Entry& entry) noexcept {
    const auto key = reinterpret_cast<std::uint64_t>(address);
    Slot& slot = slots_[index(key)];
    const std::uint64_t value =
        static_cast<std::uint64_t>(entry.clock) | (static_cast<std::uint64_t>(entry.thread) << 32) |
        (static_cast<std::uint64_t>(entry.nonfinite) << 40) | (static_cast<std::uint64_t>(entry.checked) << 41) |
        (static_cast<std::uint64_t>(entry.external) << 42) | (static_cast<std::uint64_t>(entry.kept) << 43) |
        (static_cast<std::uint64_t>(entry.of_kept) << 44) | (static_cast<std::uint64_t>(entry.site + 1) << 45);
    // A reader on another thread may see the new key with the old value; it then names a neighbour as the producer of
    // one tensor, once. Not worth a lock.
    slot.key.store(key, std::memory_order_relaxed);
    slot.value.store(value, std::memory_order_relaxed);
  }

  void forget(const void* address) noexcept {
    const auto key = reinterpret_cast<std::uint64_t>(address);
    Slot& slot = slots_[index(key)];
    if (slot.key.load(std::memory_order_relaxed) == key) slot.key.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t size = std::size_t{1} << 16;
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> value{0};
  };
  static std::size_t index(std::uint64_t key) noexcept { return mix_address(key) & (size - 1); }
  std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(size);
};

/// Forward op of an autograd node, by the thread and sequence number that both carry.
class SequenceTable {
 public:
  void put(std::uint64_t thread, std::int64_t sequence, std::int64_t site) noexcept {
    const std::uint64_t key = key_of(thread, sequence);
    Slot& slot = slots_[mix_address(key) & (size - 1)];
    slot.key.store(key, std::memory_order_relaxed);
    slot.site.store(site, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t find(std::uint64_t thread, std::int64_t sequence) const noexcept {
    const std::uint64_t key = key_of(thread, sequence);
    const Slot& slot = slots_[mix_address(key) & (size - 1)];
    return slot.key.load(std::memory_order_relaxed) == key ? slot.site.load(std::memory_order_relaxed) : trace::none;
  }

 private:
  static constexpr std::size_t size = std::size_t{1} << 16;
  static std::uint64_t key_of(std::uint64_t thread, std::int64_t sequence) noexcept {
    return (static_cast<std::uint64_t>(sequence) << 12) ^ (thread + 1);
  }
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::int64_t> site{trace::none};
  };
  std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(size);
};

/// A number by address, in sets of eight so that hundreds of parameters do not push each other out.
class AddressTable {
 public:
  [[nodiscard]] std::int64_t find(const void* address) const noexcept {
    const auto key = reinterpret_cast<std::uint64_t>(address);
    if (key == 0) return trace::none;
    const Slot* set = &slots_[index(key)];
    for (std::size_t i = 0; i < ways; ++i) {
      if (set[i].key.load(std::memory_order_relaxed) == key) return set[i].value.load(std::memory_order_relaxed);
    }
    return trace::none;
  }
  /// Replaces the entry of the set that was put longest ago when the set is full.
  void put(const void* address, std::int64_t value, std::uint32_t now) noexcept {
    const auto key = reinterpret_cast<std::uint64_t>(address);
    if (key == 0) return;
    Slot* set = &slots_[index(key)];
    Slot* victim = set;
    for (std::size_t i = 0; i < ways; ++i) {
      if (set[i].key.load(std::memory_order_relaxed) == key || set[i].key.load(std::memory_order_relaxed) == 0) {
        victim = &set[i];
        break;
      }
      if (set[i].when.load(std::memory_order_relaxed) < victim->when.load(std::memory_order_relaxed)) victim = &set[i];
    }
    victim->key.store(key, std::memory_order_relaxed);
    victim->value.store(value, std::memory_order_relaxed);
    victim->when.store(now, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t ways = 8;
  static constexpr std::size_t sets = std::size_t{1} << 11;
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::int64_t> value{trace::none};
    std::atomic<std::uint32_t> when{0};
  };
  static std::size_t index(std::uint64_t key) noexcept { return (mix_address(key) & (sets - 1)) * ways; }
  std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(sets * ways);
};

}  // namespace ampscope::observe
