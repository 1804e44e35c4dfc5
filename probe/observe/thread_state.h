// What a thread that runs ops carries along.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/intrusive_ptr.h>

#include "probe/observe/session.h"
#include "probe/record/recent_calls.h"

namespace ampscope::observe {

using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

/// A tensor argument of a running op. The weak reference does not count as a use, so it changes nothing that autograd
/// decides by use counts, and it tells whether the tensor is still there when the op ends.
struct InputRef {
  WeakTensor tensor{at::Tensor().getIntrusivePtr()};
  const void* address = nullptr;
  std::int16_t argument = 0;
};

enum class FrameKind : std::uint8_t {
  op,
  backward_node,
  transparent,   ///< the engine's wrapper and ranges that only group: what is inside belongs to what is outside
  ignored,       ///< works on tensors without values (a compiler traces the program); so does all inside it
  closed_range,  ///< a range whose ops are its own: Optimizer.step, the data loader
};

enum class SiteFrom : std::uint8_t {
  parent,      ///< the op, node or range around it
  frames,      ///< Python's frames, or the parameters that it uses
  prediction,  ///< what followed the call before it last time
};

/// An op, node or range that has started and not ended on this thread.
struct Frame {
  static constexpr std::size_t max_inputs = 8;

  const void* function = nullptr;  ///< address of the RecordFunction: pairs start and end
  FrameKind kind = FrameKind::op;
  const OpInfo* op = nullptr;
  SiteFrom site_from = SiteFrom::parent;
  SiteState* site = nullptr;         ///< null for transparent frames and when the site table is full
  SiteState* last_inside = nullptr;  ///< the site that ran last inside it
  std::uint32_t start_clock = 0;
  std::uint64_t start_ticks = 0;
  trace::Phase phase = trace::Phase::other;
  bool autocast = false;
  trace::DType autocast_dtype = trace::DType::unknown;
  bool autocast_on_cuda = false;
  bool node_grad_mode = false;   ///< backward_node: whether grad mode was on at its start (create_graph)
  bool same_op_inside = false;   ///< autocast called the op itself again after its casts
  bool in_engine = false;        ///< the engine's own frame: counts in engine_depth
  bool recompute = false;        ///< an op run again inside backward (activation checkpointing)
  bool compared_inside = false;  ///< level shadow: a call inside it was compared
  bool python_inside = false;    ///< Python code of the user runs inside: an autograd.Function
  bool keeps_inputs = false;
  bool input_was_nonfinite = false;  ///< in-place op: its target was known to be non-finite before
  bool input_was_finite = false;     ///< in-place op: its target had been looked at and was finite
  bool input_was_external = false;   ///< in-place op: it was non-finite, and nothing that was seen made it so
  bool input_was_kept = false;       ///< in-place op: its target was written in an earlier step
  std::uint8_t input_count = 0;
  std::array<InputRef, max_inputs> inputs;
  std::vector<c10::IValue> arguments;  ///< non-tensor arguments of an op that may have to be computed again
  c10::IValue before_write;            ///< in-place op, where its call may be kept whole: its target before it began
  c10::IValue gradient_list;           ///< unscale: its gradients
  trace::ScalerUpdate update;          ///< update_scale: what stood before
  const c10::TensorImpl* scale_tensor = nullptr;
  const c10::TensorImpl* tracker_tensor = nullptr;
  const c10::TensorImpl* found_inf_tensor = nullptr;
  double scale = 1;
  std::int64_t optimizer = trace::none;
  const c10::TensorImpl* variable = nullptr;  ///< node that accumulates a gradient: of this parameter
  bool adds_gradient = false;                 ///< … and adds it to one that is there
};

/// An op that changes a kept tensor, between its start and its end: some elements as they were, and what is to change
/// each.
struct WatchedWrite {
  const void* function = nullptr;  ///< of the frame; null when nothing is watched
  trace::WriteSample sample;
  std::vector<float> before;
  std::vector<float> contribution;
  double weight = 0;   ///< part of the value that the op takes away or replaces: 1 - c of a product, that of lerp
  double follows = 0;  ///< weight that the new value has in the moving average it completes; 0: it completes none
};

/// What a watched op left behind: a moving average is made of several.
struct WatchedResult {
  const void* address = nullptr;
  double weight = 0;
};

/// Parameters of narrow types while their optimizer steps.
struct WatchedParameters {
  struct Entry {
    std::int64_t parameter = trace::none;
    WeakTensor tensor{at::Tensor().getIntrusivePtr()};
    std::uint32_t version = 0;
    std::size_t first = 0;
    std::size_t count = 0;
    bool in_fused_kernel = false;  ///< written by a kernel that takes lists, and leaves versions as they are
  };
  std::uint32_t clock = 0;  ///< of the thread when the step began
  std::vector<Entry> entries;
  std::vector<float> before;
  std::vector<float> gradient;
};

/// Some elements of a parameter as they were when it was first looked at.
struct FirstLook {
  std::int64_t since = 0;
  std::vector<float> values;
};

struct ThreadState {
  static constexpr std::size_t max_depth = 128;

  Session* session = nullptr;
  std::uint8_t slot = 0;         ///< reused by later threads
  bool busy = false;             ///< inside one of our own callbacks
  bool autocast = false;         ///< whether autocast was on here when last looked at
  std::uint32_t clock = 0;       ///< ops started
  std::int64_t clock_step = 0;   ///< step the thread was last seen in
  std::uint32_t step_clock = 0;  ///< value of `clock` when that step began
  std::size_t depth = 0;         ///< frames in use
  std::size_t overflow = 0;      ///< frames beyond max_depth
  std::array<Frame, max_depth> frames;
  std::unordered_map<std::uint64_t, SiteState*> sites;
  /// Some of `sites`: the map alone costs as much as all else about a site.
  struct KnownSite {
    std::uint64_t key = 0;
    SiteState* site = nullptr;
  };
  std::array<KnownSite, 1024> known_sites;
  SiteState* last_outer = nullptr;
  record::FastLane* lane = nullptr;
  stats::FlatStats scratch;
  record::RecentCalls recent;
  std::vector<std::pair<std::int64_t, at::Tensor>> gradients;  ///< that are being looked at; empty in between
  std::vector<trace::NonfiniteEvent> step_events;              ///< of the running step, written if it turns out bad
  std::int64_t step_events_step = 0;

  WatchedWrite write;
  std::array<WatchedResult, 4> watched_results;
  std::size_t next_watched_result = 0;
  WatchedParameters watched_parameters;
  std::unordered_map<std::int64_t, FirstLook> first_looks;  ///< by parameter

  // Backward pass in progress on this thread.
  bool in_backward = false;
  int engine_depth = 0;  ///< frames of the engine that are open: more than one in a nested backward pass
  SiteState* last_node = nullptr;
  bool backward_root_pending = false;  ///< the root's own node has not been seen yet
  bool backward_scaled = false;
  bool divisor_changed = false;  ///< a loss was divided by another number than the last time
  bool backward_accumulated = false;
  std::uint64_t backward_optimizers = 0;
  std::uint64_t backward_added = 0;  ///< optimizers whose gradients it added to
  std::uint32_t backward_flags = 0;  ///< trace::event_flag bits found on the way
  bool root_gradient_made = false;   ///< torch made the gradient that the next backward pass starts with
  /// When zero_grad began: one parameter of each optimizer that had a gradient.
  std::vector<std::pair<std::int64_t, std::size_t>> held_gradients;
  std::int64_t cleared_optimizer = trace::none;         ///< whose gradients the running zero_grad filled with zeros
  trace::DType backward_dtype = trace::DType::unknown;  ///< narrowest that gradients passed through

  std::uintptr_t last_parameter = 0;  ///< parameter that an outermost op used last: tells sites apart without Python
  double pending_loss = 0;
  bool has_pending_loss = false;
  // Optimizer.step range in progress on this thread.
  int optimizer_ranges = 0;
  int stepped_at_range = 0;  ///< depth of the innermost such range that counted as a step inside the one that is open
  std::int64_t range_parameter = trace::none;  ///< a parameter that its ops changed
  std::uintptr_t range_object = 0;
  bool object_follows = false;  ///< whoever opens an optimizer's range tells in a moment which optimizer it is
  std::string range_class;
  double range_learning_rate = 0;
  bool range_through_scaler = false;
  bool range_fused = false;                     ///< a fused kernel that takes found_inf ran in it
  bool range_fused_skip = false;                ///< with found_inf set
  bool step_applied_nonfinite = false;          ///< gradients checked before an optimizer's step were non-finite
  int scaler_region = 0;                        ///< calls of Python's GradScaler that were announced and are running
  std::int64_t region_optimizer = trace::none;  ///< whose gradients were unscaled in it
  bool region_found_inf = false;
  double region_scale = 1;               ///< the loss scale they carried
  bool region_divides = false;           ///< they still carry it: the optimizer's kernel divides
  std::int64_t step_ticks = 0;           ///< spent in our callbacks and notes since the step began
  const OpInfo* scaler_range = nullptr;  ///< innermost open "GradScaler.…" range (C++)
  bool scaler_made = false;              ///< a scaler (C++) has just made its scale
  bool scaler_restored = false;          ///< a state was loaded into a scaler (C++) that has not scaled since
  std::int64_t events = 0;
  std::int64_t own_ticks = 0;       ///< spent in our callbacks in timed steps
  std::int64_t own_ticks_full = 0;  ///< the same in steps with full numerics

  /// Whether the op of the top frame is already running further out: a TorchDispatchMode hands a call on to the
  /// dispatcher, which announces it once more. Only the outermost is the program's.
  [[nodiscard]] bool repeats_outer_op() const noexcept {
    for (std::size_t i = depth; i-- > 1;) {
      const Frame& outer = frames[i - 1];
      if (outer.op == frames[depth - 1].op && outer.kind == FrameKind::op) return true;
    }
    return false;
  }
  [[nodiscard]] Frame* top() noexcept { return depth > 0 ? &frames[depth - 1] : nullptr; }
};

/// Notes whether autocast is on in the calling thread.
inline void autocast_is(Session& session, ThreadState& thread, bool on) noexcept {
  if (thread.autocast == on) return;
  thread.autocast = on;
  session.autocast_threads.fetch_add(on ? 1 : -1, std::memory_order_relaxed);
}

/// State of the calling thread for the current session; null when out of memory.
[[nodiscard]] ThreadState* thread_state(Session& session) noexcept;

}  // namespace ampscope::observe
