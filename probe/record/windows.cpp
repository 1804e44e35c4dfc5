#include "probe/record/windows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "trace/series.h"

namespace ampscope::record {
namespace {

/// Length of a window of what the loss scale is judged by: every step alone up to 4096, then a 2048th of the steps so
/// far.
std::int64_t fine_window_length(std::int64_t first_step) {
  return first_step < 4096 ? 1 : first_step / 2048;
}

/// Of two types a gradient passed through, the one with the narrower range: it decides what was flushed.
trace::DType narrower(trace::DType a, trace::DType b) {
  if (a == trace::DType::unknown) return b;
  if (b == trace::DType::unknown) return a;
  return trace::float_limits(a).smallest_subnormal > trace::float_limits(b).smallest_subnormal ? a : b;
}

}  // namespace

void GradientWindows::add(const GradientSample& sample, const trace::TensorStats& stats) {
  if (sample.parameter < 0) return;
  const auto index = static_cast<std::size_t>(sample.parameter);
  if (index >= open_.size()) open_.resize(index + 1);
  Open& open = open_[index];
  trace::GradientWindow& window = open.window;
  // Steps that stand for another number of steps begin a window of their own, so that one weight holds for all of it.
  if (window.steps > 0 && (sample.step >= open.end || sample.weight != window.weight)) {
    done_.push_back(std::exchange(window, {}));
    open.last_counted = -1;
  }
  if (window.steps == 0) {
    window.parameter = sample.parameter;
    window.first_step = sample.step;
    window.scale_min = window.scale_max = sample.scale;
    window.weight = sample.weight;
    open.end = sample.step + window_length(sample.step);
  }
  if (open.last_counted != sample.step) {
    ++window.steps;
    open.last_counted = sample.step;
    open.last_nonfinite = false;
  }
  // With a budget a step has one sample of a parameter; of several in a step each counts alone.
  if (sample.weight != 1) window.zero_squares += static_cast<double>(stats.zero) * static_cast<double>(stats.zero);
  window.last_step = sample.step;
  window.scale_min = std::min(window.scale_min, sample.scale);
  window.scale_max = std::max(window.scale_max, sample.scale);
  window.backward_dtype = narrower(window.backward_dtype, sample.backward_dtype);
  if (stats.nonfinite() > 0 && !open.last_nonfinite) {
    ++window.nonfinite_steps;
    open.last_nonfinite = true;
  }
  window.stats.merge(stats);
}

std::vector<trace::GradientWindow> GradientWindows::take(std::int64_t finished_steps, bool everything) {
  for (Open& open : open_) {
    if (open.window.steps > 0 && (everything || finished_steps >= open.end)) {
      done_.push_back(std::exchange(open.window, {}));
      open.last_counted = -1;
    }
  }
  return std::exchange(done_, {});
}

void SeriesWindows::add(const std::string& name, std::int64_t object, std::int64_t step, double value) {
  Open& open = open_[{name, object}];
  trace::SeriesPoint& point = open.point;
  if (point.count > 0 && step >= open.end) close(open);
  if (point.count == 0) {
    point.name = name;
    point.object = object;
    point.first_step = step;
    point.min = std::numeric_limits<double>::infinity();
    point.max = -std::numeric_limits<double>::infinity();
    open.end = step + (name == trace::backward_absmax_series ? fine_window_length(step) : window_length(step));
  }
  ++point.count;
  point.last_step = step;
  if (std::isfinite(value)) {
    open.sum += value;
    point.min = std::min(point.min, value);
    point.max = std::max(point.max, value);
  } else {
    ++point.nonfinite;
  }
}

void SeriesWindows::close(Open& open) {
  trace::SeriesPoint& point = open.point;
  const std::int64_t finite = point.count - point.nonfinite;
  if (finite > 0) {
    point.mean = open.sum / static_cast<double>(finite);
  } else {
    point.min = point.max = point.mean = std::numeric_limits<double>::quiet_NaN();
  }
  done_.push_back(std::move(point));
  open = {};
}

std::vector<trace::SeriesPoint> SeriesWindows::take(std::int64_t finished_steps, bool everything) {
  for (auto& [key, open] : open_) {
    if (open.point.count > 0 && (everything || finished_steps >= open.end)) close(open);
  }
  return std::exchange(done_, {});
}

}  // namespace ampscope::record
