// A trace in memory, as the reader returns it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/model.h"

namespace ampscope::trace {

/// What of the file could not be read, for `ampscope info`.
struct Damage {
  bool truncated = false;  ///< the file ends inside a frame
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_read = 0;       ///< the header and the complete frames
  std::uint64_t bytes_damaged = 0;    ///< of the file that belong to no complete frame
  std::uint64_t regions_damaged = 0;  ///< places of the file where such bytes lie
  std::uint64_t frames_read = 0;
  std::uint64_t records_read = 0;
  std::uint64_t records_skipped = 0;  ///< of a kind that this release does not know
  std::uint64_t records_damaged = 0;  ///< that contradict the format; what was wrong in them was left out
  std::string reason;                 ///< the first thing that was wrong; empty when nothing was
  [[nodiscard]] bool any() const noexcept { return truncated || !reason.empty(); }
};

/// What the records of one kind take of the file.
struct KindSize {
  std::string kind;           ///< as in docs/trace-format.md: "site", "gradients", …
  std::uint64_t records = 0;  ///< rows, where a record holds many
  std::uint64_t bytes = 0;    ///< before compression
};

/// Every id in a trace is `none` or an index of its table, and an enclosing site never leads back to where it began.
/// Entries that the file refers to but does not hold have their id and are else at their defaults.
struct Trace {
  std::string path;
  int major = format_major;
  int minor = format_minor;
  RunInfo run;
  std::vector<Site> sites;                   ///< by id: sites[i].id == i
  std::vector<SiteTotals> totals;            ///< by site id; those of a site without a record are all zero
  std::vector<Parameter> parameters;         ///< by id
  std::vector<Optimizer> optimizers;         ///< by id
  std::vector<Scaler> scalers;               ///< by id
  std::vector<Schedule> schedules;           ///< by id
  std::vector<StepPattern> patterns;         ///< by id
  std::vector<StepRun> step_runs;            ///< ordered, without overlap
  std::vector<ScalerUpdate> scaler_updates;  ///< in order, expanded from their run-length code
  std::vector<GradientWindow> gradients;     ///< ordered by first step, then parameter
  std::vector<NonfiniteGradient> nonfinite_gradients;
  std::vector<SiteNumerics> numerics;
  std::vector<RoundingErrors> rounding_errors;   ///< of runs at the level shadow
  std::vector<NonfiniteEvent> nonfinite_events;  ///< by order
  std::vector<FlightRecord> flight_records;
  std::vector<SeriesPoint> series;
  std::vector<HiddenRegion> hidden_regions;
  std::vector<RoundTrip> round_trips;
  RecorderStatus status;
  std::optional<RunEnd> end;
  std::optional<ExitStatus> exit;
  Damage damage;
  std::vector<KindSize> sizes;      ///< in the order of first occurrence
  std::uint64_t content_bytes = 0;  ///< of all frames, before compression
  std::vector<WriteSample> writes;  ///< by step

  [[nodiscard]] std::int64_t steps() const noexcept;
};

}  // namespace ampscope::trace
