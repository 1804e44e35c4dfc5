// Windows of steps: one step long at first, longer as the run grows, so that a run ten times as long writes only a few
// more of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trace/model.h"

namespace ampscope::record {

/// From this step on a run counts as settled, and what is kept of it grows more slowly: ten times the steps give at
/// most a fifth more trace.
inline constexpr std::int64_t settled_steps = 4096;

/// Length of the window that begins at `first_step`: one step up to 31, then a sixteenth of the steps so far, a third
/// once the run has settled.
[[nodiscard]] constexpr std::int64_t window_length(std::int64_t first_step) noexcept {
  if (first_step < 32) return 1;
  return first_step < settled_steps ? first_step / 16 : first_step / 3;
}

/// What the fast lane carries for one gradient.
struct GradientSample {
  std::int64_t step = 0;
  std::int64_t parameter = trace::none;
  double scale = 1;
  double weight = 1;
  trace::DType backward_dtype = trace::DType::unknown;
};

/// Merges gradients of all parameters over windows. Used by the writer thread only.
class GradientWindows {
 public:
  void add(const GradientSample& sample, const trace::TensorStats& stats);
  /// Windows that `finished_steps` steps have completed; all that are open when `everything`.
  [[nodiscard]] std::vector<trace::GradientWindow> take(std::int64_t finished_steps, bool everything);

 private:
  struct Open {
    trace::GradientWindow window;
    std::int64_t end = 0;  ///< first step behind it
    std::int64_t last_counted = -1;
    bool last_nonfinite = false;
  };
  std::vector<Open> open_;  ///< by parameter
  std::vector<trace::GradientWindow> done_;
};

/// The same for single numbers by name and object.
class SeriesWindows {
 public:
  void add(const std::string& name, std::int64_t object, std::int64_t step, double value);
  [[nodiscard]] std::vector<trace::SeriesPoint> take(std::int64_t finished_steps, bool everything);

 private:
  struct Open {
    trace::SeriesPoint point;
    double sum = 0;
    std::int64_t end = 0;
  };
  void close(Open& open);
  std::map<std::pair<std::string, std::int64_t>, Open> open_;
  std::vector<trace::SeriesPoint> done_;
};

}  // namespace ampscope::record
