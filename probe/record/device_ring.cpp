#include "probe/record/device_ring.h"

#include <algorithm>

#include <time.h>

namespace ampscope::record {

using stats::StatisticsDevice;

DeviceRing::DeviceRing(StatisticsDevice& device) : device_(device) {
  for (Slot& slot : slots_)
    slot.entry = std::make_unique<Entry[]>(StatisticsDevice::rows);
}

int DeviceRing::slot_for(void* stream, int rows) noexcept {
  int unused = -1;
  for (int i = 0; i < StatisticsDevice::slots; ++i) {
    Slot& slot = slots_[static_cast<std::size_t>(i)];
    if (slot.state == State::filling && slot.stream == stream) {
      if (slot.rows + rows <= StatisticsDevice::rows) return i;
      if (!send(i)) return -1;
    } else if (slot.state == State::free && unused < 0) {
      unused = i;
    }
  }
  if (unused >= 0) {
    Slot& slot = slots_[static_cast<std::size_t>(unused)];
    slot.state = State::filling;
    slot.stream = stream;
    slot.rows = slot.entries = slot.taken = 0;
  }
  return unused;
}

void DeviceRing::look(void* stream, std::span<const stats::TensorView> tensors, std::span<DeviceLook> looks) noexcept {
  if (abandoned()) return;
  const std::lock_guard lock(mutex_);
  for (DeviceLook& look : looks)
    look.number = 0;
  if (device_.capturing(stream)) {
    captured_.fetch_add(static_cast<std::int64_t>(tensors.size()), std::memory_order_relaxed);
    return;
  }
  std::size_t at = 0;
  while (at < tensors.size()) {
    int rows = device_.rows_for(tensors[at]);
    const int slot_index = rows > 0 ? slot_for(stream, rows) : -1;
    if (slot_index < 0) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      ++at;
      continue;
    }
    Slot& slot = slots_[static_cast<std::size_t>(slot_index)];
    const int first_row = slot.rows;
    const int first_entry = slot.entries;
    std::size_t batched = 0;
    // As many as fit into the slot and into one launch.
    while (rows > 0 && slot.rows + rows <= StatisticsDevice::rows && batched < batch_.size()) {
      looks[at].number = ++numbers_;
      Entry& entry = slot.entry[static_cast<std::size_t>(slot.entries++)];
      entry.look = looks[at];
      entry.look.dtype = tensors[at].dtype;
      entry.count = tensors[at].count;
      entry.row = slot.rows;
      slot.rows += rows;
      batch_[batched++] = tensors[at++];
      rows = at < tensors.size() ? device_.rows_for(tensors[at]) : 0;
    }
    if (!device_.launch(slot_index, first_row, stream, std::span(batch_).first(batched))) {
      // The rows may have been written to in part, so they stay used; nobody asks for what they hold.
      slot.entries = first_entry;
      refused_.fetch_add(static_cast<std::int64_t>(batched), std::memory_order_relaxed);
      for (std::size_t i = at - batched; i < at; ++i)
        looks[i].number = 0;
      continue;
    }
    outstanding_.fetch_add(static_cast<std::int64_t>(batched), std::memory_order_relaxed);
  }
}

bool DeviceRing::send(int index) noexcept {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  if (!device_.fetch(index, slot.rows, slot.stream)) return false;
  slot.state = State::sent_for;
  waiting_[static_cast<std::size_t>(waiting_count_++)] = index;
  return true;
}

void DeviceRing::send_for() noexcept {
  if (abandoned()) return;
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < StatisticsDevice::slots; ++i) {
    // While its stream captures a graph a slot cannot be sent for; a later call does it.
    if (slots_[static_cast<std::size_t>(i)].state == State::filling) static_cast<void>(send(i));
  }
}

const DeviceRing::Entry* DeviceRing::next() noexcept {
  while (waiting_count_ > 0) {
    const int index = waiting_[0];
    Slot& slot = slots_[static_cast<std::size_t>(index)];
    if (slot.taken == 0) {
      const stats::Arrival arrival = device_.poll(index);
      if (arrival == stats::Arrival::pending) return nullptr;
      if (arrival == stats::Arrival::lost) {
        lost_.fetch_add(slot.entries, std::memory_order_relaxed);
        outstanding_.fetch_sub(slot.entries, std::memory_order_relaxed);
        release(index);
        continue;
      }
    }
    if (slot.taken == slot.entries) {
      release(index);
      continue;
    }
    const Entry& entry = slot.entry[static_cast<std::size_t>(slot.taken++)];
    stats::TensorView view;
    view.dtype = entry.look.dtype;
    view.count = entry.count;
    scratch_->reset();
    device_.read(index, entry.row, view, *scratch_);
    outstanding_.fetch_sub(1, std::memory_order_relaxed);
    return &entry;
  }
  return nullptr;
}

void DeviceRing::release(int index) noexcept {
  slots_[static_cast<std::size_t>(index)].state = State::free;
  std::move(waiting_.begin() + 1, waiting_.begin() + waiting_count_, waiting_.begin());
  --waiting_count_;
}

void DeviceRing::give_up_outstanding() noexcept {
  lost_.fetch_add(outstanding_.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
}

std::int64_t DeviceRing::pause() noexcept {
  constexpr long interval_ns = 1'000'000;
  const timespec interval{0, interval_ns};
  nanosleep(&interval, nullptr);
  return interval_ns;
}

}  // namespace ampscope::record
