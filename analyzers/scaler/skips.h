// Which skipped steps a loss scaler makes by design, and which ones say that something is wrong.
//
// A scaler starts high, skips until the scale fits, and from then on doubles it every growth_interval updates; when
// that was too much it skips once and halves it again. Such skips are how it works. A scale that falls faster than it
// can grow is not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/model.h"

namespace ampscope::analyzers {

class TraceView;

enum class SkipKind : std::uint8_t {
  settling,  ///< while the scale comes down from its first value
  probe,     ///< at least growth_interval updates after the skip before: the scale had been raised
  isolated,  ///< a single batch with larger gradients
  collapse,  ///< one of many, closer together than the scale can recover
  forced,    ///< the loss itself was non-finite: no scale would have helped
};

struct Skip {
  std::int64_t step = 0;
  std::size_t update = 0;  ///< index among the scaler's updates
  double scale = 0;        ///< used in the step
  double scale_after = 0;
  SkipKind kind = SkipKind::isolated;
  [[nodiscard]] bool by_design() const noexcept { return kind != SkipKind::collapse && kind != SkipKind::forced; }
};

struct SkipLimits {
  std::int64_t settled_after = 20;  ///< good updates in a row that end the settling
  std::int64_t min_skips = 5;       ///< so many skips that are neither settling nor probes make a collapse, if …
  double min_fall = 3;              ///< … the scale fell by so many powers of two since it had settled
};

struct SkipAnalysis {
  std::int64_t scaler = trace::none;
  std::int64_t updates = 0;
  std::vector<Skip> skips;
  double first_scale = 0;
  double settled_scale = 0;                 ///< when the settling ended; the first one when it never did
  std::int64_t settled_step = trace::none;  ///< first step of the stretch without skips that ended it; none: never
  double lowest_scale = 0;
  double last_scale = 0;
  std::int64_t growth_interval = 0;
  bool saw_tooth = false;  ///< the scale keeps its size, but by settings with which most steps are skipped
  bool collapsed = false;
  bool hopeless = false;   ///< collapsed so far that training is lost: a scale below 1, or nothing but skips at the end
  double skip_period = 0;  ///< mean distance, in updates, of the skips of the collapse or the saw-tooth; 0 without one

  [[nodiscard]] std::int64_t count(SkipKind kind) const noexcept;
  [[nodiscard]] const Skip* at_step(std::int64_t step) const noexcept;
};

[[nodiscard]] SkipAnalysis analyze_skips(const TraceView& view, std::int64_t scaler, const SkipLimits& limits = {});

}  // namespace ampscope::analyzers
