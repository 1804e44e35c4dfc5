#include "trace/writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <exception>
#include <limits>
#include <new>
#include <system_error>
#include <vector>

#include "trace/append_file.h"
#include "trace/encode.h"
#include "trace/frame.h"

namespace ampscope::trace {

namespace {

/// Pending records are split into frames of about this size, far below what a reader accepts.
constexpr std::size_t frame_target = std::size_t{4} << 20;

/// Rows of one record. With statistics a row takes up to 20 kB, without them about a hundred bytes.
constexpr std::size_t rows_with_stats = 1024;
constexpr std::size_t rows_without_stats = 16384;

template <class T>
constexpr std::size_t max_rows() {
  return requires(T row) { row.stats; } ? rows_with_stats : rows_without_stats;
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

std::string cannot_open(const std::string& path, int error) {
  switch (error) {
    case EEXIST:
      return path + " exists already; give another name with -o, or --force to overwrite it";
    case ENOENT:
    case ENOTDIR:
      return "cannot create the trace " + path + ": its folder does not exist";
    case EISDIR:
      return "cannot create the trace " + path + ": it is a folder";
    case ENOTSUP:
      return "cannot create the trace " + path + ": it is a pipe or a socket, and a trace needs a file";
    default:
      return "cannot create the trace " + path + ": " + reason(error);
  }
}

bool same_bits(const ScalerUpdate& a, const ScalerUpdate& b) {
  // Floats bit for bit: operator== takes -0 for 0 and no NaN for itself.
  const auto bits = [](const ScalerUpdate& update) {
    return std::array<std::uint64_t, 5>{
        std::bit_cast<std::uint32_t>(update.scale_before), std::bit_cast<std::uint32_t>(update.scale_after),
        std::bit_cast<std::uint32_t>(update.found_inf), std::bit_cast<std::uint64_t>(update.growth_factor),
        std::bit_cast<std::uint64_t>(update.backoff_factor)};
  };
  return a.step == b.step && a.scaler == b.scaler && a.tracker_before == b.tracker_before &&
         a.tracker_after == b.tracker_after && a.growth_interval == b.growth_interval && a.assigned == b.assigned &&
         bits(a) == bits(b);
}

std::vector<schema::ScalerRun> run_lengths(std::span<const ScalerUpdate> updates) {
  std::vector<schema::ScalerRun> runs;
  const ScalerUpdate* last = nullptr;
  for (const auto& update : updates) {
    if (last != nullptr && last->step != std::numeric_limits<std::int64_t>::max() &&
        same_bits(update, schema::successor(*last))) {
      ++runs.back().repeat;
    } else {
      runs.push_back({update, 0});
    }
    last = &update;
  }
  return runs;
}

}  // namespace

struct Writer::Impl {
  AppendFile file;
  std::string path;
  std::string error;
  std::string pending;                  // encoded records
  std::vector<std::size_t> frame_ends;  // offsets in `pending` where one frame ends and the next begins
  std::string frame;
  std::unique_ptr<Compressor> compressor;
  std::uint64_t bytes_written = 0;
  Impl* abandoned_before = nullptr;

  [[nodiscard]] bool usable() const noexcept { return file.is_open() && error.empty(); }

  void forget_pending() noexcept {
    pending.clear();
    frame_ends.clear();
  }

  /// The first reason stays: the later ones follow from it.
  void fail(std::string_view why) noexcept {
    forget_pending();
    if (!error.empty()) return;
    try {
      error = why;
    } catch (const std::exception&) {
      error = "no memory";  // short enough to need none
    }
  }

  /// Runs `work`, which may throw, and turns an exception into the writer's error.
  template <class Work>
  bool guarded(const Work& work) noexcept {
    try {
      work();
    } catch (const std::bad_alloc&) {
      fail("not enough memory to write the trace");
    } catch (const std::exception& exception) {
      fail(exception.what());
    }
    return error.empty();
  }

  void reset(const std::string& new_path) {
    forget_pending();
    error.clear();
    bytes_written = 0;
    path = new_path;
    if (!compressor) compressor = std::make_unique<Compressor>();
  }

  bool append(std::string_view bytes) {
    const int result = file.append(bytes);
    if (result != 0) {
      fail("cannot write to the trace " + path + ": " + reason(result));
      return false;
    }
    bytes_written += bytes.size();
    return true;
  }

  template <class Encode>
  void add(const Encode& encode) noexcept {
    if (!usable()) return;
    const std::size_t before = pending.size();
    guarded([&] {
      encode(pending);
      if (pending.size() - before > max_frame_content) {
        fail("cannot write to the trace " + path + ": one record takes " + std::to_string(pending.size() - before) +
             " bytes, more than a frame may hold");
        return;
      }
      const std::size_t begin = frame_ends.empty() ? 0 : frame_ends.back();
      if (pending.size() - begin <= frame_target) return;
      // A large record stands alone, so that no frame comes near the limit.
      if (before > begin) frame_ends.push_back(before);
      if (pending.size() - before > frame_target) frame_ends.push_back(pending.size());
    });
  }

  template <class T>
  void add_record(const T& record) noexcept {
    add([&](std::string& out) { encode_record(out, record); });
  }

  template <class T>
  void add_rows(std::span<const T> rows) noexcept {
    while (!rows.empty()) {
      const auto part = rows.first(std::min(rows.size(), max_rows<T>()));
      add([&](std::string& out) { encode_columns(out, part); });
      rows = rows.subspan(part.size());
    }
  }
};

Writer::Writer() noexcept = default;
Writer::~Writer() = default;
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;

bool Writer::prepare(const std::string& path) noexcept {
  if (!impl_) impl_.reset(new (std::nothrow) Impl);
  out_of_memory_ = !impl_;
  if (!impl_) return false;
  impl_->file.close();
  return impl_->guarded([&] { impl_->reset(path); });
}

bool Writer::open(const std::string& path, Existing existing) noexcept {
  if (!prepare(path)) return false;
  return impl_->guarded([&] {
    const int result = existing == Existing::overwrite ? impl_->file.overwrite(path) : impl_->file.create(path);
    if (result != 0) {
      impl_->fail(cannot_open(path, result));
      return;
    }
    const auto header = make_header(format_major, format_minor);
    if (!impl_->append({header.data(), header.size()})) impl_->file.discard(path);
  });
}

bool Writer::append(const std::string& path) noexcept {
  if (!prepare(path)) return false;
  return impl_->guarded([&] {
    const int result = impl_->file.open_existing(path);
    if (result != 0) {
      impl_->fail("cannot append to the trace " + path + ": " + reason(result));
      return;
    }
    std::array<char, header_size> bytes{};
    const std::int64_t count = impl_->file.read_front(bytes.data(), bytes.size());
    const auto header = read_header({bytes.data(), static_cast<std::size_t>(std::max<std::int64_t>(count, 0))});
    if (header.state != HeaderState::good || header.major != format_major) {
      impl_->file.close();
      impl_->fail("cannot append to " + path + ": it is not a trace of this format");
    }
  });
}

void Writer::add(const RunInfo& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const Site& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const Parameter& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const Optimizer& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const Scaler& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const Schedule& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const StepPattern& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const NonfiniteEvent& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const FlightRecord& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const HiddenRegion& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const RoundTrip& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const RecorderStatus& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const RunEnd& record) noexcept {
  if (impl_) impl_->add_record(record);
}
void Writer::add(const ExitStatus& record) noexcept {
  if (impl_) impl_->add_record(record);
}

void Writer::add(std::span<const SiteTotals> records) noexcept {
  if (impl_) impl_->add_rows(records);
}
void Writer::add(std::span<const StepRun> records) noexcept {
  if (impl_) impl_->add_rows(records);
}
void Writer::add(std::span<const ScalerUpdate> records) noexcept {
  if (!impl_ || !impl_->usable()) return;
  impl_->guarded([&] { impl_->add_rows(std::span<const schema::ScalerRun>(run_lengths(records))); });
}
void Writer::add(std::span<const GradientWindow> records) noexcept {
  if (impl_) impl_->add_rows(records);
}
void Writer::add(std::span<const NonfiniteGradient> records) noexcept {
  if (impl_) impl_->add_rows(records);
}
void Writer::add(std::span<const SiteNumerics> records) noexcept {
  if (impl_) impl_->add_rows(records);
}
void Writer::add(std::span<const RoundingErrors> records) noexcept {
  if (impl_) impl_->add_rows(records);
}
void Writer::add(std::span<const WriteSample> records) noexcept {
  if (impl_) impl_->add_rows(records);
}
void Writer::add(std::span<const SeriesPoint> records) noexcept {
  if (impl_) impl_->add_rows(records);
}

bool Writer::flush() noexcept {
  if (!impl_ || !impl_->usable()) return false;
  if (impl_->pending.empty()) return true;
  return impl_->guarded([&] {
    Impl& writer = *impl_;
    if (writer.frame_ends.empty() || writer.frame_ends.back() != writer.pending.size()) {
      writer.frame_ends.push_back(writer.pending.size());
    }
    const std::string_view pending = writer.pending;
    std::size_t begin = 0;
    for (const std::size_t end : writer.frame_ends) {
      std::string why;
      writer.frame.clear();
      if (!writer.compressor->append_frame(pending.substr(begin, end - begin), writer.frame, why)) {
        writer.fail("cannot compress the records of the trace " + writer.path + ": " + why);
        return;
      }
      // One at a time: those that still fit on a full disk stay.
      if (!writer.append(writer.frame)) return;
      begin = end;
    }
    writer.forget_pending();
  });
}

bool Writer::close() noexcept {
  if (!impl_ || !impl_->file.is_open()) return false;
  flush();
  const int result = impl_->file.close();
  return impl_->guarded([&] {
    if (result != 0) impl_->fail("cannot write to the trace " + impl_->path + ": " + reason(result));
  });
}

void Writer::abandon() noexcept {
  // Leaked, not freed: in a forked child another thread of the parent may have been in the middle of a change to it.
  // Linked, so that leak checkers see that it is on purpose.
  static Impl* abandoned = nullptr;
  if (!impl_) return;
  Impl* const left = impl_.release();
  left->abandoned_before = abandoned;
  abandoned = left;
}

bool Writer::is_open() const noexcept {
  return impl_ && impl_->file.is_open();
}

std::uint64_t Writer::bytes_written() const noexcept {
  return impl_ ? impl_->bytes_written : 0;
}

std::uint64_t Writer::bytes_pending() const noexcept {
  return impl_ ? impl_->pending.size() : 0;
}

const std::string& Writer::error() const noexcept {
  static const std::string no_memory = "not enough memory to write the trace";
  static const std::string nothing;
  if (impl_) return impl_->error;
  return out_of_memory_ ? no_memory : nothing;
}

}  // namespace ampscope::trace
