// What one observed process knows: sites, parameters, optimizers, scalers, the running step. One object a process, made
// when observation begins and never destroyed, because callbacks may run until the very end.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <c10/core/TensorImpl.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/intrusive_ptr.h>

#include "probe/observe/address_tables.h"
#include "probe/observe/op_info.h"
#include "probe/observe/round_trips.h"
#include "probe/record/budget.h"
#include "probe/record/recorder.h"
#include "probe/record/step_ledger.h"
#include "trace/model.h"

namespace ampscope::observe {

class DeviceLooks;

/// A site while the process runs. Owned by the session, never freed; changed only by the thread it belongs to. What
/// every call needs comes first, in one cache line: a program's own data drive it out between two steps.
struct alignas(64) SiteState {
  std::int64_t id = trace::none;
  SiteState* parent = nullptr;
  std::uint64_t key = 0;                ///< op, types and modes: equal for calls that may share the site
  SiteState* predicted_next = nullptr;  ///< what followed last time: of outermost sites, or inside the same parent
  SiteState* first_inside = nullptr;    ///< what came first inside it last time
  record::SiteCounters* counters = nullptr;
  /// Outermost site: the leaf it was given first; null where none, or others.
  const c10::TensorImpl* parameter = nullptr;
  const OpInfo* op = nullptr;
  std::int16_t parameter_argument = 0;      ///< as which argument `parameter` was given
  std::unique_ptr<trace::Site> definition;  ///< until its first call has ended and it is written
  trace::Phase phase = trace::Phase::other;
  std::string api;
  bool scales_loss = false;         ///< its result is a loss times the loss scale
  double divisor = 0;               ///< what it last divided a loss by (1 / what it multiplied it with); 0: nothing yet
  std::uint8_t calls_kept = 0;      ///< how many of its calls are in files, see kept_calls.h
  bool is_python_function = false;  ///< an autograd.Function: user code runs inside
  std::int64_t forward_site = trace::none;
  trace::DType compute_dtype = trace::DType::unknown;
  std::int64_t last_event_step = -1;  ///< step in which a non-finite event was last recorded
  std::int64_t harmless_steps = 0;    ///< steps with a non-finite output after which all was well
  int events_written = 0;
  std::int64_t last_absorbed_step = -1;  ///< step in which it was last recorded to end a non-finite value
  int absorbers_written = 0;
  std::int64_t last_compared_step = -1;  ///< level shadow, see shadow.h
};

/// Sites by id. Finding one takes no lock: chunks and entries are published once and stay.
class SiteList {
 public:
  [[nodiscard]] SiteState* find(std::int64_t id) const noexcept {
    if (id < 0 || id >= record::SiteCounterTable::max_sites) return nullptr;
    const Chunk* const chunk = chunks_[static_cast<std::size_t>(id / chunk_size)].load(std::memory_order_acquire);
    return chunk ? (*chunk)[static_cast<std::size_t>(id % chunk_size)].load(std::memory_order_acquire) : nullptr;
  }
  /// The caller holds a lock of its own; `id` < max_sites.
  void put(std::int64_t id, std::unique_ptr<SiteState> site) {
    std::atomic<Chunk*>& slot = chunks_[static_cast<std::size_t>(id / chunk_size)];
    Chunk* chunk = slot.load(std::memory_order_relaxed);
    if (!chunk) {
      chunk = new Chunk{};  // Kept for the life of the process, like the session.
      slot.store(chunk, std::memory_order_release);
    }
    (*chunk)[static_cast<std::size_t>(id % chunk_size)].store(site.release(), std::memory_order_release);
  }

 private:
  static constexpr std::int64_t chunk_size = 1024;
  using Chunk = std::array<std::atomic<SiteState*>, chunk_size>;
  std::array<std::atomic<Chunk*>, record::SiteCounterTable::max_sites / chunk_size> chunks_{};
};

/// State of the training protocol. All of it is guarded by `mutex`; events are few a step.
struct Protocol {
  std::mutex mutex;
  record::StepLedger ledger;
  std::vector<trace::Parameter> parameters;
  std::vector<trace::Optimizer> optimizers;
  std::vector<trace::Scaler> scalers;
  std::vector<trace::Schedule> schedules;
  std::unordered_map<std::uintptr_t, std::int64_t> optimizer_by_object;
  std::unordered_map<std::uintptr_t, std::int64_t> schedule_by_object;
  std::unordered_map<std::uintptr_t, std::int64_t> scaler_by_object;
  std::unordered_map<const void*, std::int64_t> scaler_by_scale_tensor;
  bool ended_by_assignment = false;  ///< the last update of a scaler only set its scale
  struct MadeScaler {
    trace::SourceLine created;
    bool restored = false;
  };
  std::unordered_map<std::uintptr_t, MadeScaler> scalers_made;  ///< by identity in Python
  std::unordered_set<std::uintptr_t> optimizers_restored;       ///< by identity in Python; not seen at work yet
  struct Name {
    std::string name, module, module_class;
  };
  std::unordered_map<std::uintptr_t, Name> names_by_tensor;  ///< TensorImpl → name, told by the attach layer
  std::unordered_map<std::uintptr_t, Name> names_by_data;

  std::unordered_map<std::int64_t, trace::SourceLine> sources_by_site;  ///< of optimizer and scaler sites

  std::int64_t primary_optimizer = trace::none;  ///< without a scaler, a step ends when this one has stepped
  bool primary_settled = false;                  ///< it steps more often than another one that once came after it
  bool scaler_in_use = false;                    ///< an update was seen, or gradients were unscaled since the last step
  bool explicit_steps = false;                   ///< the program marks its steps
  bool parameters_written = false;               ///< by hand, since the last backward pass
  std::atomic<bool> parameters_written_hint{false};  ///< the same, to be asked without the lock
  bool optimizer_seen = false;
  bool gradients_accumulated = false;             ///< some backward pass has left gradients with its parameters
  std::atomic<bool> only_takes_gradients{false};  ///< there were passes, all by autograd.grad
  bool last_backward_scaled = false;              ///< the latest backward pass that was seen was of a scaled loss
  bool budget_refusal_told = false;
  /// What Python's frames said of a scaler's call, by the scale tensor's address and by the parameter; valid for as
  /// long as no scaler or optimizer has been made since.
  struct KnownScaler {
    std::uintptr_t object = 0;
    std::uint64_t made = 0;
    std::string implementation;
  };
  std::unordered_map<const void*, KnownScaler> scaler_calls;
  std::unordered_map<std::int64_t, std::uint64_t> owners_told;  ///< parameter → objects made when its owner was told
  double scale = 1;                                             ///< current loss scale as far as known
  std::vector<double> scale_of;                                 ///< the same of each scaler, by id
  bool scale_known = false;
  std::atomic<bool> scales{false};  ///< the scale is known and not 1; to be asked without the lock
  /// By parameter id. Weak: a parameter lives as long as the program wants.
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> variables;
  std::vector<std::uint8_t> fresh_gradients;  ///< by parameter id: whether it received a gradient nobody has looked at
  /// By parameter id: where its gradient lay when a backward pass had left it. Memory of earlier gradients is used
  /// again, so that an address known to have held one does not tell.
  std::vector<const void*> arrived_gradients;
  std::int64_t micro_batch = 0;
  std::int64_t step_started_ns = 0;
  std::int64_t writer_ns_counted = 0;  ///< of the writer thread's time, what has been counted as cost of a step
  double squared_gradient_norm = 0;    ///< of the running step
  bool gradient_norm_known = false;
  bool step_was_bad = false;  ///< a non-finite loss or gradient, or a skipped step
};

enum class State : std::uint8_t {
  off,     ///< not attached, detached or failed
  asleep,  ///< waiting for a first backward pass at next to no cost
  awake,   ///< recording in memory; no backward pass yet, so no file
  recording,
};

struct Session {
  explicit Session(record::Options options);

  record::Recorder recorder;
  Protocol protocol;
  ProducerTable producers;
  SequenceTable sequences;
  RoundTrips round_trips;
  AddressTable parameters;         ///< data address → parameter id
  AddressTable gradients;          ///< data address of .grad → parameter id
  AddressTable scale_tensors;      ///< data address of a loss scale → scaler id
  AddressTable found_inf_tensors;  ///< data address of what an unscale on a device has found → 1
  std::atomic<std::int64_t> step{0};
  std::optional<record::BudgetPlanner> budget;  ///< guarded by the protocol's lock; none: no budget was asked for
  std::atomic<record::StepMode> mode{record::StepMode::full};  ///< how closely the running step is looked at
  std::atomic<bool> gradients_drawn{true};                     ///< gradients' statistics are taken in the running step
  std::atomic<double> gradient_weight{1};
  std::atomic<bool> unannounced_scaler{false};  ///< the scaler's operators ran where nothing had announced them
  std::atomic<std::int64_t> note_ticks{0};      ///< what a note of Python's costs before it comes to us
  std::atomic<std::uint64_t> objects_made{0};   ///< scalers and optimizers that Python has made
  std::atomic<bool> optimizer_made{false};      ///< Python has made one
  std::atomic<bool> walks_frames{true};         ///< in the running step every site is looked up in Python's frames
  std::atomic<bool> full_numerics{true};        ///< in the running step
  std::atomic<bool> timed{true};                ///< ops of the running step are timed
  std::atomic<double> numerics_weight{1};
  /// Level shadow: steps that the running one stands for when its calls are computed again; 0: they are not.
  std::atomic<double> comparison_weight{0};
  std::atomic<std::int64_t> next_site{0};
  std::atomic<std::int64_t> anomaly_order{0};
  std::atomic<std::int64_t> events_before_backward{0};
  std::atomic<std::int64_t> next_full_step{0};
  std::atomic<std::int64_t> full_until{2};  ///< steps before this one are looked at in full
  std::atomic<std::int64_t> bad_step{-1};   ///< latest step with a non-finite loss or gradient or a skip
  std::atomic<std::int64_t> bad_steps{0};   ///< how many there were
  std::atomic<std::int64_t> nonfinite_events{0};
  std::atomic<std::int64_t> kept_calls{0};
  std::atomic<std::int64_t> kept_call_bytes{0};
  std::atomic<int> autocast_threads{0};      ///< threads in which autocast is on as far as known
  std::atomic<bool> flight_recorded{false};  ///< the calls before the first harmful anomaly have been written
  DeviceLooks* const devices;                ///< null when out of memory
  std::mutex sites_mutex;                    ///< of those who make sites
  SiteList sites;

  [[nodiscard]] trace::Level level() const noexcept { return recorder.options().level; }
  [[nodiscard]] bool looks_at_outputs() const noexcept {
    return level() >= trace::Level::automatic && sees_operators();
  }
  [[nodiscard]] bool looks_at_gradients() const noexcept { return level() >= trace::Level::grads; }
  /// False in steps of a budget of which only optimizers and scaler are seen.
  [[nodiscard]] bool sees_operators() const noexcept {
    return mode.load(std::memory_order_relaxed) >= record::StepMode::operators;
  }
};

/// The session and state of this process. The session is null only while off.
[[nodiscard]] State state() noexcept;
[[nodiscard]] Session* session() noexcept;
void set_state(State state) noexcept;
void set_session(Session* session) noexcept;

/// A new site; null when the table is full. Thread-safe.
[[nodiscard]] SiteState* make_site(Session& session, const OpInfo* op, SiteState* parent, std::uint64_t key);
[[nodiscard]] SiteState* site_by_id(Session& session, std::int64_t id);

}  // namespace ampscope::observe
