// Observing a C++ training program by hand, in one line:
//
//     int main() {
//       ampscope::Probe probe;   // observes until it goes out of scope
//       train();
//     }
//
// For programs that are started without `ampscope run` (with it no line is needed; both together are fine). Link
// against the adapter for the program's LibTorch: target ampscope::probe after find_package(ampscope), or
// -lampscope_probe_torch<MAJOR>.<MINOR>. Options come from AMPSCOPE_* environment variables; the trace is
// AMPSCOPE_OUTPUT, or run.ampscope in the current folder.
#ifndef AMPSCOPE_PROBE_H
#define AMPSCOPE_PROBE_H

#include <string>

#include "ampscope/probe_c.h"

namespace ampscope {

/// Observes this process from construction to destruction. Neither throws: where observing is not possible, one line on
/// stderr says why, is_attached() is false and the program goes on.
class Probe {
 public:
  Probe() noexcept { ampscope_attach(); }
  ~Probe() { ampscope_detach("detach", nullptr); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  /// Ends the current step here, for loops whose steps cannot be told from optimizer calls. From the first call on,
  /// steps end only here.
  void step() noexcept { ampscope_mark_step(); }

  [[nodiscard]] bool is_attached() const noexcept { return ampscope_is_attached() == 1; }

  /// Path of the trace; empty while none was made (nothing has run backward yet).
  [[nodiscard]] std::string trace_path() const { return ampscope_trace_path(); }

  /// Why observing is not possible; empty where it is.
  [[nodiscard]] std::string last_error() const { return ampscope_last_error(); }
};

}  // namespace ampscope
#endif
