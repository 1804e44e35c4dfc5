#include "analyzers/core/finding.h"

namespace ampscope::analyzers {

const char* severity_name(Severity severity) noexcept {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "info";
}

const char* verdict_name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::clean:
      return "clean";
    case Verdict::info:
      return "info";
    case Verdict::warning:
      return "warning";
    case Verdict::error:
      return "error";
  }
  return "clean";
}

const char* phase_name(trace::Phase phase) noexcept {
  switch (phase) {
    case trace::Phase::forward:
      return "forward";
    case trace::Phase::backward:
      return "backward";
    case trace::Phase::optimizer:
      return "optimizer";
    case trace::Phase::scaler:
      return "scaler";
    case trace::Phase::data:
      return "data";
    case trace::Phase::other:
      return "other";
  }
  return "other";
}

}  // namespace ampscope::analyzers
