// Tensors that the program keeps (weights, averages, states of optimizers), cast to a 16-bit type and put back in their
// place: the run goes on with what was left of them.
//
// A cast to 16 bits of such a tensor is noted with the address it came from. When its values come back to that address
// (copy_), or in a new tensor that takes the place of a parameter or that is updated in place from then on, it was a
// round trip. A copy that is made for inference or for a file never comes back, and master copies made of half weights
// never went down.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <ATen/core/ivalue.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

#include "trace/model.h"

namespace ampscope::observe {

struct Frame;
struct Session;
struct ThreadState;

/// What is noted of casts that may turn out to be halves of round trips.
class RoundTrips {
 public:
  struct Narrowed {
    const void* source = nullptr;  ///< where the values were kept
    std::uint32_t clock = 0;       ///< the half values are those of this moment of this thread
    std::uint8_t thread = 0;
    /// Of the tensor that they were cast back to. Its address alone would not do: a temporary's is used again.
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> memory;
    trace::RoundTrip trip;
  };

  std::mutex mutex;
  std::unordered_map<const void*, Narrowed> halves;    ///< by address of the 16-bit values
  std::unordered_map<const void*, Narrowed> returned;  ///< by address of a new tensor that they were cast back to
  /// By the 16-bit values: those that went through a file or another process come back in other memory.
  std::unordered_map<std::uint64_t, Narrowed> by_content;
  std::unordered_set<std::int64_t> sizes;              ///< numbers of elements of what stands there
  std::int64_t elements_left = std::int64_t{1} << 24;  ///< that may still be compared: a bound on the time it costs
  std::int64_t trips_left = 512;                       ///< that may still be recorded
  std::atomic<bool> any_halves{false};                 ///< to be asked without the lock
  std::atomic<bool> any_returned{false};
};

/// A cast or a move that the program asked for has ended.
void cast_ended(Session& session, const ThreadState& thread, const Frame& frame, c10::ArrayRef<c10::IValue> outputs);
/// An operator is about to write to its first argument, a tensor or a list of them; an optimizer's or the program's.
void kept_values_written(Session& session, const ThreadState& thread, const Frame& frame, const c10::IValue& target);
/// The memory at `address` has taken the place of a parameter's.
void parameter_replaced(Session& session, const void* address, std::int64_t parameter);

}  // namespace ampscope::observe
