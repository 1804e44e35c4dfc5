// A trace in memory, as the reader returns it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/model.h"

namespace ampscope::trace {

/// What of the file could not be read, for `ampscope info`.
struct Damage {
  bool truncated = false;        ///< the file ends inside a frame
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_read = 0;  ///< up to the end of the last complete frame
  std::uint64_t frames_read = 0;
  std::uint64_t records_read = 0;
  std::uint64_t records_skipped = 0;  ///< of a kind that this release does not know
  std::string reason;            ///< why reading stopped early; empty when it did not
  [[nodiscard]] bool any() const noexcept { return truncated || !reason.empty(); }
};

struct Trace {
  std::string path;
  int major = format_major;
  int minor = format_minor;
  RunInfo run;
  std::vector<Site> sites;              ///< by id: sites[i].id == i
  std::vector<SiteTotals> totals;       ///< by site id; those of a site without a record are all zero
  std::vector<Parameter> parameters;    ///< by id
  std::vector<Optimizer> optimizers;    ///< by id
  std::vector<Scaler> scalers;          ///< by id
  std::vector<Schedule> schedules;      ///< by id
  std::vector<StepPattern> patterns;    ///< by id
  std::vector<StepRun> step_runs;       ///< ordered, without overlap
  std::vector<ScalerUpdate> scaler_updates;  ///< in order, expanded from their run-length code
  std::vector<GradientWindow> gradients;     ///< ordered by first step, then parameter
  std::vector<NonfiniteGradient> nonfinite_gradients;
  std::vector<SiteNumerics> numerics;
  std::vector<NonfiniteEvent> nonfinite_events;  ///< by order
  std::vector<FlightRecord> flight_records;
  std::vector<SeriesPoint> series;
  std::vector<HiddenRegion> hidden_regions;
  RecorderStatus status;
  std::optional<RunEnd> end;
  std::optional<ExitStatus> exit;
  Damage damage;

  [[nodiscard]] std::int64_t steps() const noexcept;
};

}  // namespace ampscope::trace
