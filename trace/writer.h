// Writes a trace. Used by the probe's writer thread, by `ampscope run` for the exit status, and by tests.
//
// Nothing here throws: a training process must never see an exception of ours. A failed write makes the writer refuse
// all further work and keep the reason. One thread at a time may use an object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trace/model.h"

namespace ampscope::trace {

class Writer {
 public:
  enum class Existing { refuse, overwrite };

  Writer() noexcept;
  ~Writer();  ///< closes the file; what was not flushed is lost
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Creates `path` (O_EXCL unless overwriting) and writes the header frame. False: see error().
  bool open(const std::string& path, Existing existing) noexcept;
  /// Opens an existing trace to append frames to it. An incomplete frame at its end stays where it is, for it is
  /// evidence; readers find the frames behind it.
  bool append(const std::string& path) noexcept;

  // Each encodes one record into the pending frame. No I/O.
  void add(const RunInfo& record) noexcept;
  void add(const Site& record) noexcept;
  void add(const Parameter& record) noexcept;
  void add(const Optimizer& record) noexcept;
  void add(const Scaler& record) noexcept;
  void add(const Schedule& record) noexcept;
  void add(const StepPattern& record) noexcept;
  void add(const NonfiniteEvent& record) noexcept;
  void add(const FlightRecord& record) noexcept;
  void add(const HiddenRegion& record) noexcept;
  void add(const RoundTrip& record) noexcept;
  void add(const RecorderStatus& record) noexcept;
  void add(const RunEnd& record) noexcept;
  void add(const ExitStatus& record) noexcept;
  // Bulk records become columns; an empty span writes nothing.
  void add(std::span<const SiteTotals> records) noexcept;
  void add(std::span<const StepRun> records) noexcept;
  void add(std::span<const ScalerUpdate> records) noexcept;  ///< run-length coded here
  void add(std::span<const GradientWindow> records) noexcept;
  void add(std::span<const NonfiniteGradient> records) noexcept;
  void add(std::span<const SiteNumerics> records) noexcept;
  void add(std::span<const RoundingErrors> records) noexcept;
  void add(std::span<const WriteSample> records) noexcept;
  void add(std::span<const SeriesPoint> records) noexcept;

  /// Compresses the pending records into one frame and writes it whole. A frame is what a reader can always recover.
  bool flush() noexcept;
  /// flush and close; the object can open another file afterwards.
  bool close() noexcept;
  /// Forgets the file without writing or closing it: in a forked child, which must not touch its parent's trace.
  void abandon() noexcept;

  [[nodiscard]] bool is_open() const noexcept;
  /// To the file, by this object, since it was opened.
  [[nodiscard]] std::uint64_t bytes_written() const noexcept;
  /// Uncompressed size of the pending frame, to decide when to flush.
  [[nodiscard]] std::uint64_t bytes_pending() const noexcept;
  /// One sentence: what failed, on which file, why. Empty while all is well.
  [[nodiscard]] const std::string& error() const noexcept;

 private:
  struct Impl;
  bool prepare(const std::string& path) noexcept;

  std::unique_ptr<Impl> impl_;
  bool out_of_memory_ = false;
};

}  // namespace ampscope::trace
