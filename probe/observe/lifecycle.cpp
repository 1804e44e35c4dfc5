#include "probe/observe/lifecycle.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <pthread.h>
#include <torch/version.h>
#include <unistd.h>

#include "probe/observe/announcements.h"
#include "probe/observe/device_looks.h"
#include "probe/observe/nonfinite.h"
#include "probe/observe/protocol_events.h"
#include "probe/observe/python_frames.h"
#include "probe/observe/self_test.h"
#include "probe/observe/ticks.h"
#include "trace/autograd.h"

#ifndef AMPSCOPE_VERSION
#error "AMPSCOPE_VERSION comes from CMake"
#endif

namespace ampscope::observe {
namespace {

std::mutex attach_mutex;
std::atomic<bool> handlers_installed{false};
std::atomic<bool> forked{false};

record::Options& last_options() {
  static auto* options = new record::Options;  // Leaked: see session.h.
  return *options;
}

std::string processor_name(std::vector<std::string>& features) {
  static constexpr std::array<const char*, 10> wanted = {
      "f16c", "avx2", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_fp16", "asimd", "bf16"};
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::string name;
  while (std::getline(file, line) && !line.empty()) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) name = value;
    if (line.starts_with("flags") || line.starts_with("Features")) {
      const std::string padded = " " + value + " ";
      for (const char* feature : wanted) {
        if (padded.find(std::string(" ") + feature + " ") != std::string::npos) features.emplace_back(feature);
      }
    }
  }
  return name;
}

trace::RunInfo run_info(const record::Options& options) {
  trace::RunInfo run;
  run.run_id = options.run_id;
  run.tool_version = AMPSCOPE_VERSION;
  run.command = options.command;
  run.working_directory = options.start_directory;
  run.language = python_connected() ? "python" : "c++";
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) run.hostname = host.data();
  run.pid = getpid();
  run.parent_pid = getppid();
  run.rank = options.rank;
  run.local_rank = options.local_rank;
  run.world_size = options.world_size;
  run.start_time_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  run.torch_version = TORCH_VERSION;
  run.python_version = python_version();
  run.processor = processor_name(run.processor_features);
  run.devices = {"cpu"};
  run.threads = at::get_num_threads();
  run.level = options.level;
  run.budget_percent = options.budget_percent;
  run.max_bytes = options.max_bytes;
  return run;
}

/// In the child of a fork: the parent's trace, thread and locks are not ours. Nothing is freed, everything is left.
void after_fork_in_child() {
  if (state() == State::off) return;
  if (Session* inherited = session()) {
    inherited->recorder.abandon();
    abandon_device_looks(*inherited);
  }
  forked.store(true, std::memory_order_release);
  set_session(nullptr);
  // DataLoader workers and the like never come to a backward pass and pay one atomic load an op.
  set_state(State::asleep);
}

/// Whether an operator or the scaler has thrown. A program that ends by it in its first step has run no backward pass
/// yet, and a trace of what it did is all there is to say why.
bool a_call_failed(Session& current) {
  {
    const std::lock_guard lock(current.protocol.mutex);
    if (current.protocol.ledger.contains(trace::EventKind::refusal)) return true;
  }
  const std::int64_t sites = current.next_site.load(std::memory_order_acquire);
  for (std::int64_t id = 0; id < sites; ++id) {
    const SiteState* const site = current.sites.find(id);
    if (site != nullptr && site->counters != nullptr && site->counters->failed_calls.get() > 0) return true;
  }
  return false;
}

/// Whether a process that ran no backward pass was on its way to one: torch refused a call of it, or it gave up over
/// values that were computed from weights and are not finite.
bool ended_before_training(Session& current, const std::string& how) {
  if (how == "exception" && a_call_failed(current)) return true;
  const ThreadState* const thread = thread_state(current);
  return thread != nullptr &&
         std::any_of(thread->step_events.begin(), thread->step_events.end(), trace::depends_on_weights);
}

void at_exit() {
  detach("exit", "");
}

std::terminate_handler terminate_before = nullptr;

/// A C++ program ends by an exception that nobody catches, without running what std::atexit knows.
[[noreturn]] void at_terminate() {
  std::string what;
  if (const std::exception_ptr uncaught = std::current_exception()) {
    try {
      std::rethrow_exception(uncaught);
    } catch (const std::exception& error) {
      what = error.what();
    } catch (...) {  // Of a type that says nothing.
    }
  }
  detach("exception", what);
  if (terminate_before) terminate_before();
  std::abort();
}

}  // namespace

std::string attach() {
  const std::lock_guard lock(attach_mutex);
  if (state() != State::off) return "";
  if (const char* fault = self_test(); *fault != '\0') {
    return std::string(fault) + "; ampscope was built for torch " TORCH_VERSION;
  }
  last_options() = record::options_from_environment();
  python_connect();
  calibrate_ticks();
  set_session(new Session(last_options()));
  if (!handlers_installed.exchange(true)) {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    std::atexit(at_exit);
    terminate_before = std::set_terminate(at_terminate);
  }
  set_state(State::awake);
  announce(Announced::everything);
  return "";
}

void detach(const std::string& how, const std::string& detail) noexcept {
  try {
    const std::lock_guard lock(attach_mutex);
    Session* current = session();
    if (current && state() == State::awake && ended_before_training(*current, how)) begin_recording(*current);
    set_state(State::off);
    // Also after a fault of ours has switched observation off: the trace still gets its end.
    if (!current || !current->recorder.started()) return;
    ThreadState* thread = thread_state(*current);
    if (thread) {
      // A program that looks at its loss and stops leaves its last step without a backward pass.
      if (!thread->step_events.empty() && thread->step_events_step == current->step.load(std::memory_order_relaxed))
        step_is_bad(*current);
      settle_events(*current, *thread);
      flush_counts(*current, *thread);
    }
    finish_device_looks(*current, thread);
    finish_ledger(*current, thread);
    trace::RunEnd end;
    end.how = how;
    end.detail = detail;
    end.end_time_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    current->recorder.finish(end);
  } catch (...) {  // The process is ending or the program goes on without us.
  }
}

bool begin_recording(Session& current) {
  static std::mutex begin_mutex;
  const std::lock_guard lock(begin_mutex);
  if (state() == State::recording) return true;
  if (state() == State::off) return false;
  if (!current.recorder.start(run_info(current.recorder.options()))) {
    set_state(State::off);
    return false;
  }
  set_state(State::recording);
  return true;
}

void wake() noexcept {
  static std::mutex wake_mutex;
  try {
    const std::lock_guard lock(wake_mutex);
    if (state() != State::asleep) return;
    if (!session()) {
      record::Options options = last_options();
      set_session(new Session(options));
    }
    set_state(State::awake);
    announce(Announced::everything);
  } catch (...) {
    set_state(State::off);
  }
}

void give_up(const char* reason) noexcept {
  if (Session* current = session()) {
    current->recorder.switch_off(reason, current->step.load(std::memory_order_relaxed));
  }
  set_state(State::off);
}

void flush_counts(Session& current, ThreadState& thread) noexcept {
  current.recorder.count_events(thread.events);
  thread.events = 0;
  current.recorder.count_own_time(ticks_to_ns(static_cast<std::uint64_t>(thread.own_ticks)),
                                  ticks_to_ns(static_cast<std::uint64_t>(thread.own_ticks_full)));
  thread.own_ticks = thread.own_ticks_full = 0;
}

}  // namespace ampscope::observe
