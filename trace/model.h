// The records of a trace: what one training process tells about its run. The probe fills and writes them, the reader
// returns them, analyzers read them. docs/trace-format.md describes their encoding; a field added here is added there,
// in the writer and in the reader, and readers of older releases skip it.
//
// Steps are counted from 0. A step ends when an optimizer step was taken or skipped; the micro-batches of a gradient
// accumulation belong to one step. Ids are dense and start at 0 in each kind; -1 (`none`) means absent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/tensor_stats.h"

namespace ampscope::trace {

inline constexpr int format_major = 1;  ///< a reader refuses a larger one
inline constexpr int format_minor = 0;  ///< additions that older readers skip
inline constexpr std::int64_t none = -1;

enum class Level : std::uint8_t { ops, grads, automatic, full, shadow };

/// Who the process is and how it was observed. Written once, first.
struct RunInfo {
  std::string run_id;        ///< equal in all traces of one `ampscope run`
  std::string tool_version;  ///< of ampscope
  std::vector<std::string> command;
  std::string working_directory;
  std::string language;  ///< "python" or "c++"
  std::string hostname;
  std::int64_t pid = 0;
  std::int64_t parent_pid = 0;
  std::int64_t rank = none;  ///< of a distributed run; none outside one
  std::int64_t local_rank = none;
  std::int64_t world_size = none;
  std::int64_t start_time_ns = 0;  ///< Unix time
  std::string torch_version;
  std::string python_version;
  std::string processor;                        ///< model name of the CPU
  std::vector<std::string> processor_features;  ///< those that matter here: "avx512_bf16", "amx_bf16", "avx512_fp16", …
  std::vector<std::string> devices;             ///< "cpu", "cuda:0 NVIDIA H200", …
  int threads = 0;                              ///< intra-op threads of torch
  Level level = Level::automatic;
  double budget_percent = 0;   ///< 0: no budget was asked for
  std::int64_t max_bytes = 0;  ///< of the trace; 0: the default
};

/// A line of the user's program.
struct SourceLine {
  std::string file;  ///< absolute, as the interpreter knew it
  int line = 0;
  std::string function;
  [[nodiscard]] bool known() const noexcept { return !file.empty(); }
};

enum class Phase : std::uint8_t { forward, backward, optimizer, scaler, data, other };

enum class SiteKind : std::uint8_t {
  op,             ///< an operator call of the dispatcher
  backward_node,  ///< an autograd node that is executed ("AddmmBackward0"); its operators are its children
  range,          ///< a named range: "Optimizer.step#Adam.step", a torch.compile region, an autograd.Function
};

/// Type and example shape of one tensor argument or result of a site.
struct TensorType {
  DType dtype = DType::unknown;
  std::vector<std::int64_t> shape;  ///< of the first call
  std::string device;               ///< "cpu", "cuda:0"
  std::int64_t parameter = none;    ///< the parameter that this argument is, where it is one
  std::int64_t producer = none;     ///< site that made this tensor at the first call; none: unknown, data or constant
  bool requires_grad = false;
};

/// A place in the program that executes one operator: the unit of aggregation.
struct Site {
  std::int64_t id = none;
  std::int64_t parent = none;  ///< enclosing site: the outer op of a composite one, the backward node, the range
  SiteKind kind = SiteKind::op;
  Phase phase = Phase::other;
  std::string name;          ///< "aten::linear", "AddmmBackward0"
  std::string overload;      ///< "dtype", "Tensor"; empty for the default
  std::string module;        ///< dotted path, "" for the root module's own forward; see has_module
  std::string module_class;  ///< "Linear"
  bool has_module = false;
  SourceLine source;              ///< the innermost line of user code
  std::vector<SourceLine> stack;  ///< user frames outside `source`, inner to outer, few
  std::string api;                ///< library function of torch that the user's line called, where one is known to us:
                                  ///< "clip_grad_norm_", "GradScaler.scale", "checkpoint", "custom_fwd", …
  std::map<std::string, double> api_arguments;  ///< numeric arguments of that function: {"max_norm": 1.0}
  int thread = 0;         ///< order in which threads were first seen; 0 is the one that trained first
  bool autocast = false;  ///< whether the user's code ran it under autocast (as seen at the outermost op)
  DType autocast_dtype = DType::unknown;
  std::string autocast_device;  ///< "cpu", "cuda"
  bool grad_enabled = false;
  bool in_recompute = false;        ///< a forward op executed inside a backward node (activation checkpointing)
  bool traced = false;              ///< torch.jit.trace recorded it
  bool autocast_cache = false;      ///< under autocast: whether autocast keeps the casts of weights
  bool autocast_elsewhere = false;  ///< autocast was off here while it was on in another thread
  std::vector<TensorType> inputs;   ///< as the user's code passed them: before autocast's casts
  std::vector<TensorType> outputs;
  DType compute_dtype = DType::unknown;  ///< of the innermost op of the same name: after autocast's casts
  std::vector<double> scalars;           ///< numeric scalar arguments in schema order (1e-8, -inf, alpha …), first call
  std::vector<std::string> scalar_names;  ///< their schema names, parallel to scalars
  std::int64_t forward_site = none;       ///< of a backward node: the site whose autograd node this is
  std::int64_t sequence_number = none;
};

/// Running totals of one site. Later records of the same site replace earlier ones.
struct SiteTotals {
  std::int64_t site = none;
  std::int64_t calls = 0;
  std::int64_t steps = 0;  ///< steps in which it was called
  std::int64_t first_step = none;
  std::int64_t last_step = none;
  std::int64_t elements = 0;       ///< of its outputs, all calls
  std::int64_t bytes = 0;          ///< of its outputs, all calls
  std::int64_t time_ns = 0;        ///< wall time inside, children included; estimated from the timed calls
  std::int64_t checked_calls = 0;  ///< calls whose outputs were looked at for non-finite values
  std::int64_t nonfinite_calls = 0;
  std::int64_t nonfinite_steps = 0;
  std::int64_t first_nonfinite_step = none;
  std::int64_t last_nonfinite_step = none;
  double absmax = 0;              ///< largest finite magnitude any checked output had
  std::int64_t failed_calls = 0;  ///< calls that were left by an exception
  std::int64_t first_failed_step = none;
};

/// A tensor that autograd accumulates gradients for.
struct Parameter {
  std::int64_t id = none;
  std::string name;  ///< dotted, as named_parameters gives it; "parameter 3" where no name is known
  DType dtype = DType::unknown;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;  ///< elements
  std::string device;
  std::string module;  ///< path of the owning module
  std::string module_class;
  std::int64_t optimizer = none;   ///< the optimizer that was seen to own it
  std::int64_t first_step = none;  ///< step in which it first received a gradient
  std::int64_t replaces = none;    ///< the parameter whose place it took: the same tensor with other memory or dtype
  std::int64_t made_by = none;     ///< site that made the memory, where it replaces another
};

struct Optimizer {
  std::int64_t id = none;
  std::string name;                        ///< class: "AdamW"
  bool fused = false;                      ///< takes found_inf itself, so its step runs even when the scaler skips
  SourceLine source;                       ///< where its step is called
  std::map<std::string, double> settings;  ///< lr, eps, betas, weight_decay as first seen
  bool restored = false;                   ///< the program loaded the state of an earlier run into it
};

struct Scaler {
  std::int64_t id = none;
  std::string
      implementation;  ///< "torch.amp.GradScaler", "ampscope::GradScaler", a subclass's name, or "aten" if unknown
  SourceLine source;   ///< where update is called
  bool enabled = true;
  SourceLine created;     ///< where it was made, if that was seen
  bool restored = false;  ///< the program loaded the state of an earlier one into it
};

/// What the program did with its training protocol, in order. A step is a sequence of these.
enum class EventKind : std::uint8_t {
  scale_loss,       ///< a loss was multiplied by the loss scale; object = scaler
  backward,         ///< one backward pass (a micro-batch); see flags
  unscale,          ///< gradients of one optimizer were divided by the scale; object = optimizer
  gradient_read,    ///< gradients were read outside backward (norm, isfinite, histogram); site says by what, object =
                    ///< optimizer where it is known
  gradient_write,   ///< gradients were changed in place outside backward and outside unscale (clip, mul, clamp)
  gradient_clear,   ///< zero_grad; object = optimizer or none
  optimizer_step,   ///< an optimizer changed its parameters; object = optimizer
  optimizer_skip,   ///< the scaler kept an optimizer from stepping; object = optimizer
  scaler_update,    ///< object = scaler
  schedule_step,    ///< a learning-rate schedule advanced; object = schedule
  parameter_write,  ///< parameters were changed in place by no optimizer that is known (update by hand, EMA swap)
  scale_read,       ///< the program read the scale (get_scale); object = scaler; see by_inverse_scale
  loss_read,        ///< a loss that is multiplied by the scale was read outside backward; site says by what
  refusal,          ///< the scaler threw; flags say why, object = optimizer where it is of one
};

namespace event_flag {
inline constexpr std::uint32_t autocast = 1U << 0;  ///< it ran while autocast was on
inline constexpr std::uint32_t scaled = 1U << 1;    ///< backward: of a scaled loss; read/write: gradients are scaled
inline constexpr std::uint32_t autocast_float16 = 1U << 2;
inline constexpr std::uint32_t autocast_bfloat16 = 1U << 3;
inline constexpr std::uint32_t found_inf = 1U << 4;       ///< unscale, update: non-finite gradients were found
inline constexpr std::uint32_t first_use = 1U << 5;       ///< schedule_step: the call its constructor makes
inline constexpr std::uint32_t through_scaler = 1U << 6;  ///< optimizer_step: called by GradScaler.step
inline constexpr std::uint32_t create_graph = 1U << 7;    ///< backward through autograd.grad or with create_graph
inline constexpr std::uint32_t fused = 1U << 8;           ///< optimizer_step: the kernel itself skips on found_inf
inline constexpr std::uint32_t gradients_only = 1U << 9;  ///< backward: autograd.grad; nothing is accumulated in .grad
inline constexpr std::uint32_t nonfinite_gradients = 1U << 10;  ///< optimizer_step: gradients applied were non-finite
inline constexpr std::uint32_t stale_nonfinite = 1U << 11;      ///< backward: .grad held non-finite values before it
inline constexpr std::uint32_t added = 1U << 12;  ///< backward: it added to gradients that were there; see `added`
inline constexpr std::uint32_t given_gradient = 1U << 13;    ///< backward: began with a gradient that the program gave
inline constexpr std::uint32_t inside_step = 1U << 14;       ///< backward: run by an optimizer's step, as its closure
inline constexpr std::uint32_t by_inverse_scale = 1U << 15;  ///< read, write: multiplied by 1 / scale by the program;
                                                             ///< scale_read: it multiplies or divides by what it read
inline constexpr std::uint32_t replaced = 1U << 16;  ///< unscale: of gradients that no backward pass made as they are
inline constexpr std::uint32_t fresh_nonfinite = 1U << 17;  ///< backward: its own gradients were non-finite
inline constexpr std::uint32_t to_number = 1U << 18;        ///< loss_read: by item() or the like
inline constexpr std::uint32_t other_divisor = 1U << 19;    ///< backward: since the last one, a loss was divided by
                                                            ///< another number than before at that place
// refusal: what the scaler said.
inline constexpr std::uint32_t unscaled_twice = 1U << 20;     ///< unscale_ had been called since the last update
inline constexpr std::uint32_t stepped_twice = 1U << 21;      ///< step had been called since the last update
inline constexpr std::uint32_t unscaled_late = 1U << 22;      ///< unscale_ after step
inline constexpr std::uint32_t half_gradients = 1U << 23;     ///< gradients in fp16
inline constexpr std::uint32_t no_gradients = 1U << 24;       ///< step: the optimizer has no gradients
inline constexpr std::uint32_t nothing_to_update = 1U << 25;  ///< update: nothing was unscaled since the last one
inline constexpr std::uint32_t never_scaled = 1U << 26;       ///< no loss has been scaled yet
inline constexpr std::uint32_t needs_closure = 1U << 27;   ///< a closure was given, or the optimizer cannot do without
inline constexpr std::uint32_t next_iteration = 1U << 28;  ///< scale_read: what multiplies or divides by it does so in
                                                           ///< the next iteration
}  // namespace event_flag

struct ProtocolEvent {
  EventKind kind = EventKind::backward;
  std::int64_t object = none;  ///< optimizer, scaler or schedule id, see EventKind
  std::int64_t site = none;    ///< where, if a site is known; for a backward: the op whose result it starts from
  std::uint32_t flags = 0;
  std::uint64_t optimizers = 0;  ///< backward: bit i set when parameters of optimizer i (i < 64) received gradients
  std::uint64_t added = 0;       ///< backward: bit i set when some of those had gradients already
  friend bool operator==(const ProtocolEvent&, const ProtocolEvent&) = default;
};

/// Sequences of events are few and repeat, so steps refer to a pattern.
struct StepPattern {
  std::int64_t id = none;
  std::vector<ProtocolEvent> events;
};

/// Consecutive steps of the same pattern.
struct StepRun {
  std::int64_t first_step = 0;
  std::int64_t count = 0;
  std::int64_t pattern = none;
};

struct Schedule {
  std::int64_t id = none;
  std::string name;  ///< class: "OneCycleLR"
  std::int64_t optimizer = none;
  SourceLine source;  ///< where its step is called
};

/// One call of GradScaler.update, bit for bit.
struct ScalerUpdate {
  std::int64_t step = 0;
  std::int64_t scaler = none;
  float scale_before = 0;
  float scale_after = 0;
  std::int32_t tracker_before = 0;
  std::int32_t tracker_after = 0;
  float found_inf = 0;
  double growth_factor = 0;
  double backoff_factor = 0;
  std::int32_t growth_interval = 0;
  bool assigned = false;  ///< update(new_scale): the program set the scale itself
  friend bool operator==(const ScalerUpdate&, const ScalerUpdate&) = default;
};

/// Gradients of one parameter over the steps of a window. Windows are one step long at first and grow with the run.
/// Values are those the optimizer is meant to see: divided by the loss scale where a scaler is used.
struct GradientWindow {
  std::int64_t parameter = none;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t steps = 0;  ///< steps looked at
  std::int64_t nonfinite_steps = 0;
  double weight = 1;        ///< steps that each looked-at step stands for
  double zero_squares = 0;  ///< sum over the steps of the square of their zeros: how much the steps differ
  double scale_min = 1;     ///< smallest and largest loss scale of the window; 1 without a scaler
  double scale_max = 1;
  DType backward_dtype = DType::unknown;  ///< lowest precision the gradient passed through on its way; fp16: values
                                          ///< under 2^-24 / scale were flushed to zero
  TensorStats stats;                      ///< merged over the window; exponents of the unscaled values
};

/// A parameter whose gradient held non-finite values in a step (before the optimizer saw it).
struct NonfiniteGradient {
  std::int64_t step = 0;
  std::int64_t parameter = none;
  std::int64_t count = 0;  ///< elements
  std::int64_t nan = 0;
  std::int64_t infinite = 0;
};

/// Full statistics of the outputs of one site in one sampled step (all calls of that step merged).
struct SiteNumerics {
  std::int64_t site = none;
  std::int64_t step = 0;
  double weight = 1;  ///< steps this one stands for
  DType dtype = DType::unknown;
  TensorStats stats;
};

/// How far the results of one site lay from the same calls computed again in higher precision on the same inputs, in
/// one step. What the inputs had lost before is not in it.
struct RoundingErrors {
  std::int64_t site = none;
  std::int64_t step = 0;
  double weight = 1;                 ///< steps this one stands for
  DType dtype = DType::unknown;      ///< of the results
  DType reference = DType::unknown;  ///< of the second computation
  std::int64_t elements = 0;         ///< compared: finite on both sides
  std::int64_t nonfinite = 0;        ///< finite in the second computation alone
  std::int64_t above_one_ulp = 0;    ///< elements further away than that
  double sum_ulp = 0;                ///< of |result - reference| in ulp of `dtype` at the reference
  double max_ulp = 0;                ///< the largest of these …
  double worst_value = 0;            ///< … its result
  double worst_reference = 0;        ///< … and what it ought to be
  double squared_error = 0;          ///< sum of (result - reference)^2
  double squared_reference = 0;      ///< sum of reference^2
};

/// What was looked at when values were written in a narrow type.
enum class WriteKind : std::uint8_t {
  cast,          ///< numbers that look like counts or positions are converted to it
  add,           ///< something is added to a tensor that is kept: a running sum, an accumulated gradient
  multiply,      ///< a kept tensor is multiplied by a number that is not 1: the decay of a moving average
  lerp,          ///< a kept tensor is moved towards another one
  parameter,     ///< the step of an optimizer or an update by hand, seen at one parameter
  distribution,  ///< rows of probabilities: do they still add up to one?
};

/// What became of values when they were written in a narrow type, in a sampled step (single numbers that are added to:
/// in any): all calls of a site in that step merged. Of large tensors some hundred elements are looked at, evenly
/// spread.
struct WriteSample {
  std::int64_t step = 0;
  std::int64_t site = none;
  std::int64_t parameter = none;  ///< kind parameter; kind add: whose gradient is added to
  std::int64_t writer = none;     ///< site that had written the kept tensor before the latest call; none: not seen
  WriteKind kind = WriteKind::add;
  DType dtype = DType::unknown;  ///< that was written
  bool gradient = false;         ///< kind add: what is added is a gradient
  bool copied = false;           ///< kind parameter: what was written last is a copy of a kept tensor: a master
  std::int64_t calls = 0;
  std::int64_t idle_calls = 0;     ///< of them, the latest ones in a row that changed nothing
  std::int64_t elements = 0;       ///< looked at; distribution: rows
  std::int64_t concerned = 0;      ///< of them, those that something other than zero was to change; cast: all
  std::int64_t changed = 0;        ///< of those, the ones that have another value now; cast: that were rounded;
                                   ///< distribution: rows that miss one by more than fp32 would
  std::int64_t moved = 0;          ///< kind parameter: concerned elements that differ from when it was first looked at
  std::int64_t since = none;       ///< kind parameter: step in which it was first looked at
  double value_sum = 0;            ///< of the magnitudes of the concerned elements before
  double contribution_sum = 0;     ///< of what was to change them: summands, gradients, distances
  double outward_sum = 0;          ///< kind add: the same, less where the summand has the other sign than the value
  double distance_sum = 0;         ///< of the distances to what a moving average follows, where that is known
  double latest_value = 0;         ///< kind add: mean magnitude of the concerned elements before the latest call
  double latest_contribution = 0;  ///< kind add: and of what that call was to add
  std::int64_t distinct = 0;       ///< cast: different values before, of the call with the most
  std::int64_t distinct_kept = 0;  ///< cast: and after, of the same call
  bool whole = false;              ///< cast: of an integer type
  bool evenly_spaced = false;      ///< cast: the different values before are equally far apart
  double smallest = 0;             ///< cast: value before
  double largest = 0;              ///< cast: value before; distribution: largest distance of a row's sum from one
};

enum class OriginKind : std::uint8_t {
  producer,    ///< non-finite output from finite inputs
  propagator,  ///< an input was non-finite already
  input,       ///< a tensor that no observed op made (data, a loaded constant) was non-finite when first used
  unknown,     ///< inputs could not be looked at
  absorber,    ///< the other way round: a non-finite input, and an output that is finite
};

/// One tensor at the scene of a non-finite value.
struct WitnessTensor {
  TensorType type;
  bool looked_at = false;  ///< whether stats were taken
  TensorStats stats;
  std::string argument;        ///< schema name of the argument; "" for an output
  bool finite_before = false;  ///< not looked at because the call wrote its result there, but known to have been finite
  bool earlier_step = false;   ///< what it holds was written in an earlier step: it is kept from step to step
};

/// Result of computing the suspect op again in higher precision on its own inputs.
struct Replay {
  bool done = false;
  std::string precision;  ///< "fp32", "fp64"
  bool finite = false;    ///< every element finite there
  double absmax = 0;      ///< largest finite magnitude there
  std::string not_done_because;
};

/// A call whose output was non-finite. All of the first anomalous steps are kept, then only the first of each site.
struct NonfiniteEvent {
  std::int64_t order = 0;  ///< process-wide order of occurrence
  std::int64_t step = 0;
  std::int64_t micro_batch = 0;
  std::int64_t site = none;
  OriginKind kind = OriginKind::unknown;
  DType compute_dtype = DType::unknown;
  std::vector<WitnessTensor> inputs;
  std::vector<WitnessTensor> outputs;
  std::vector<double> scalars;
  std::vector<std::string> scalar_names;
  Replay replay;
  /// A multiplication: non-finite elements that met an exact zero of the other factor, as a mask has.
  std::int64_t times_zero = 0;
};

/// One entry of the flight recorder: an op call shortly before the first anomaly.
struct RecentCall {
  std::int64_t order = 0;
  std::int64_t step = 0;
  std::int64_t site = none;
  float absmax = 0;  ///< of the checked outputs; NaN: not checked
  bool nonfinite = false;
};

/// The ring of recent calls as it stood at an anomaly.
struct FlightRecord {
  std::int64_t step = 0;
  std::int64_t anomaly_order = 0;  ///< of the NonfiniteEvent that froze it
  std::vector<RecentCall> calls;   ///< oldest first
};

/// A value per window of steps: loss, gradient norm, learning rate.
struct SeriesPoint {
  std::string name;            ///< "loss", "grad_norm", "lr", "step_time_ns"
  std::int64_t object = none;  ///< optimizer for lr; micro-batches are averaged
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t count = 0;
  std::int64_t nonfinite = 0;
  double mean = 0;  ///< of the finite ones
  double min = 0;
  double max = 0;
};

/// Something that hid ops from us: a compiled region, a captured graph. Later records of the same kind and name replace
/// earlier ones.
struct HiddenRegion {
  std::string kind;  ///< "torch.compile", "cuda-graph", "torchscript"
  std::string name;
  std::int64_t calls = 0;
  std::int64_t time_ns = 0;
  std::int64_t first_step = 0;
};

/// A tensor that the program keeps was cast to a 16-bit type and the result put back in its place. Few are kept.
struct RoundTrip {
  std::int64_t step = 0;
  std::int64_t down = none;       ///< site of the cast to 16 bits
  std::int64_t up = none;         ///< site that put the values back
  std::int64_t parameter = none;  ///< the parameter it is, where it is one
  std::int64_t elements = 0;
  // Of the elements that were looked at when they were cast down.
  std::int64_t compared = 0;    ///< 0: they could not be looked at, or enough had been
  std::int64_t changed = 0;     ///< not the same after the cast; a NaN stays a NaN
  std::int64_t overflowed = 0;  ///< finite before, infinite after
  std::int64_t vanished = 0;    ///< not zero before, zero after
};

/// State of the recorder itself. Later records replace earlier ones.
struct RecorderStatus {
  std::int64_t steps = 0;        ///< finished so far
  std::int64_t events_seen = 0;  ///< callbacks
  std::int64_t events_dropped = 0;
  std::int64_t sites_dropped = 0;  ///< distinct sites beyond the table's bound
  std::int64_t elapsed_ns = 0;     ///< since the first step began
  std::int64_t own_time_ns = 0;    ///< spent inside our hooks on training threads, estimated
  std::int64_t trace_bytes = 0;
  std::string switched_off_because;  ///< empty while it works
  // With a budget steps are drawn; without one these three are the number of steps or 0, as the level says.
  std::int64_t operator_steps = 0;  ///< steps of which operators were seen
  std::int64_t gradient_steps = 0;  ///< steps of which gradients' statistics were taken
  std::int64_t full_steps = 0;      ///< steps of which outputs' statistics were taken
  // With a budget, found by comparing steps with the least observed ones: (time with recording) / (time without) - 1.
  double cost = -1;      ///< less than 0: not known
  double cost_low = -1;  ///< 95 % interval
  double cost_high = -1;
  std::int64_t switched_off_at_step = none;
};

/// How the process ended, as far as it could tell; absent after kill -9.
struct RunEnd {
  std::string how;     ///< "exit", "exception", "signal", "_exit", "detach"
  std::string detail;  ///< exception type and message, signal name
  std::int64_t end_time_ns = 0;
};

/// Written by `ampscope run` after the process ended.
struct ExitStatus {
  int status = 0;  ///< as a shell sees it: 128 + signal for a signal
};

}  // namespace ampscope::trace
