#include "probe/observe/session.h"

#include "probe/observe/device_looks.h"
#include "probe/observe/thread_state.h"

namespace ampscope::observe {
namespace {

std::atomic<State> current_state{State::off};
std::atomic<Session*> current_session{nullptr};

struct Pool {
  std::mutex mutex;
  std::vector<ThreadState*> free;
  std::uint8_t next_slot = 0;
};

Pool& pool() {
  static auto* instance = new Pool;  // Leaked: threads end after static destructors.
  return *instance;
}

/// Gives the state back when its thread ends, so that programs that start threads in every step do not grow.
struct Handle {
  ThreadState* state = nullptr;
  ~Handle() {
    if (!state) return;
    ThreadState* ended = state;
    state = nullptr;
    ended->depth = 0;
    ended->busy = false;
    ended->in_backward = false;
    ended->last_outer = nullptr;
    if (ended->session) autocast_is(*ended->session, *ended, false);
    Pool& p = pool();
    const std::lock_guard lock(p.mutex);
    p.free.push_back(ended);
  }
};

thread_local Handle handle;

}  // namespace

Session::Session(record::Options options) : recorder(std::move(options)), devices(make_device_looks(*this)) {
  if (level() == trace::Level::shadow) comparison_weight = 1;
  if (const double percent = recorder.options().budget_percent; percent > 0) {
    budget.emplace(percent, recorder.options().level);
  }
}

State state() noexcept {
  return current_state.load(std::memory_order_acquire);
}
Session* session() noexcept {
  return current_session.load(std::memory_order_acquire);
}
void set_state(State state) noexcept {
  current_state.store(state, std::memory_order_release);
}
void set_session(Session* session) noexcept {
  current_session.store(session, std::memory_order_release);
}

SiteState* make_site(Session& session, const OpInfo* op, SiteState* parent, std::uint64_t key) {
  const std::lock_guard lock(session.sites_mutex);
  const std::int64_t id = session.next_site.load(std::memory_order_relaxed);
  if (id >= record::SiteCounterTable::max_sites) {
    session.recorder.count_dropped_site();
    return nullptr;
  }
  auto site = std::make_unique<SiteState>();
  site->id = id;
  site->op = op;
  site->parent = parent;
  site->key = key;
  site->counters = &session.recorder.counters().create(id);
  site->definition = std::make_unique<trace::Site>();
  SiteState* const made = site.get();
  session.sites.put(id, std::move(site));
  session.next_site.store(id + 1, std::memory_order_relaxed);
  return made;
}

SiteState* site_by_id(Session& session, std::int64_t id) {
  return session.sites.find(id);
}

ThreadState* thread_state(Session& session) noexcept {
  ThreadState* state = handle.state;
  if (state && state->session == &session) return state;
  try {
    if (!state) {
      Pool& p = pool();
      const std::lock_guard lock(p.mutex);
      if (!p.free.empty()) {
        state = p.free.back();
        p.free.pop_back();
      } else if (p.next_slot < 255) {
        state = new ThreadState;
        state->slot = p.next_slot++;
      }
      handle.state = state;
    }
    if (state && state->session != &session) {
      // A new session (this process was forked, or observation was started again): ids of the old one mean nothing.
      state->session = &session;
      state->sites.clear();
      state->known_sites.fill({});
      state->last_outer = nullptr;
      state->lane = session.recorder.acquire_lane();
      state->depth = 0;
      state->overflow = 0;
      state->busy = false;
      state->autocast = false;
      state->in_backward = false;
      state->engine_depth = 0;
      state->optimizer_ranges = state->stepped_at_range = 0;
      state->scaler_region = 0;
      state->step_ticks = 0;
      state->last_node = nullptr;
      state->step_events.clear();
      state->recent.clear();
    }
    return state && state->lane ? state : nullptr;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace ampscope::observe
