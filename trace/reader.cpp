#include "trace/reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/frame.h"
#include "trace/trace_builder.h"

namespace ampscope::trace {

namespace {

constexpr std::size_t read_size = std::size_t{1} << 20;
constexpr std::uint64_t search_per_byte = 8;

/// Where bytes come from.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  Source(Source&&) = delete;
  Source& operator=(Source&&) = delete;

  /// Bytes read, 0 at the end, -errno on failure.
  virtual std::int64_t read(char* bytes, std::size_t size) = 0;
  /// Of the whole; 0 when it is not known.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
};

class FileSource final : public Source {
 public:
  FileSource(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  FileSource(FileSource&&) = delete;
  FileSource& operator=(FileSource&&) = delete;

  std::int64_t read(char* bytes, std::size_t size) override {
    while (true) {
      const auto count = ::read(descriptor_, bytes, size);
      if (count >= 0) return count;
      if (errno != EINTR) return -errno;
    }
  }
  [[nodiscard]] std::uint64_t size() const override { return size_; }

 private:
  int descriptor_;
  std::uint64_t size_;
};

class MemorySource final : public Source {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  std::int64_t read(char* bytes, std::size_t size) override {
    const std::size_t count = std::min(size, bytes_.size() - position_);
    if (count != 0) std::memcpy(bytes, bytes_.data() + position_, count);
    position_ += count;
    return static_cast<std::int64_t>(count);
  }
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t position_ = 0;
};

/// The part of the source that is being looked at; it moves forward only.
class Window {
 public:
  explicit Window(Source& source) : source_(source) {}

  [[nodiscard]] std::string_view view() const { return std::string_view(buffer_).substr(begin_); }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] std::uint64_t bytes_seen() const { return offset_ + buffer_.size() - begin_; }

  void drop(std::size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }

  /// Reads on until the view has `size` bytes or the source ends. False when it has fewer.
  bool need(std::size_t size) {
    if (view().size() >= size) return true;
    if (begin_ != 0) {
      buffer_.erase(0, begin_);
      begin_ = 0;
    }
    while (!ended_ && buffer_.size() < size) {
      const std::size_t before = buffer_.size();
      buffer_.resize(before + piece(before, size - before));
      const std::int64_t count = source_.read(buffer_.data() + before, buffer_.size() - before);
      buffer_.resize(before + static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
      if (count <= 0) ended_ = true;
      if (count < 0) error_ = static_cast<int>(-count);
    }
    return buffer_.size() >= size;
  }

  /// Reads a good piece more. False at the end of the source.
  bool more() {
    const std::size_t size = view().size();
    need(size + std::max(read_size, size));
    return view().size() > size;
  }

 private:
  /// How much to read at once: no more than the source still holds, where that is known, and one to find its end.
  [[nodiscard]] std::size_t piece(std::size_t buffered, std::size_t wanted) const {
    const std::uint64_t seen = offset_ + buffered;
    const std::uint64_t left = source_.size() > seen ? source_.size() - seen + 1 : read_size;
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, std::max(wanted, read_size)));
  }

  Source& source_;
  std::string buffer_;
  std::size_t begin_ = 0;     // of the view in the buffer
  std::uint64_t offset_ = 0;  // of the view in the source
  bool ended_ = false;
  int error_ = 0;
};

class Reader {
 public:
  Reader(Source& source, const std::string& name, const Progress& progress, const ReadLimits& limits)
      : source_(source), window_(source), name_(name), progress_(progress), limits_(limits) {}

  std::variant<Trace, ReadError> read() {
    trace_.path = name_;
    if (auto error = read_front()) return *std::move(error);
    TraceBuilder builder(trace_, records_, limits_);
    while (read_frame(builder)) {
      if (progress_) progress_(window_.offset(), std::max(source_.size(), window_.offset()));
    }
    Damage& damage = trace_.damage;
    damage.bytes_total = std::max(source_.size(), window_.bytes_seen());
    if (window_.error() != 0) note("reading stopped: " + std::generic_category().message(window_.error()));
    if (damage.frames_read == 0) return no_frame();
    builder.finish();
    return std::move(trace_);
  }

 private:
  ReadError fail(ReadErrorKind kind, const std::string& message) const { return {kind, name_ + message}; }

  ReadError no_frame() const {
    if (trace_.damage.reason.empty()) {
      return fail(ReadErrorKind::damaged,
                  " holds the header of a trace and nothing else: the program ended before it had trained a step, or "
                  "its first records could not be written");
    }
    return fail(ReadErrorKind::damaged, " is damaged from its beginning: " + trace_.damage.reason +
                                            ", and no complete frame follows; nothing can be read from it");
  }

  std::optional<ReadError> read_front() {
    window_.need(header_size);
    const Header header = read_header(window_.view());
    if (window_.error() != 0 && window_.view().empty()) {
      return fail(ReadErrorKind::cannot_open, " cannot be read: " + std::generic_category().message(window_.error()));
    }
    if (window_.view().empty()) {
      return fail(ReadErrorKind::not_a_trace, " is empty: nothing was recorded in it");
    }
    if (header.state == HeaderState::absent) {
      return fail(ReadErrorKind::not_a_trace,
                  " is not a trace of ampscope; `ampscope run` writes one, run.ampscope unless -o names another");
    }
    if (header.state == HeaderState::cut || !window_.need(header.size)) {
      return fail(ReadErrorKind::damaged, " is cut off inside its header: nothing was recorded in it");
    }
    if (header.major > format_major) {
      return fail(ReadErrorKind::too_new, " has trace format " + std::to_string(header.major) + "." +
                                              std::to_string(header.minor) + "; this release reads format " +
                                              std::to_string(format_major) + ", so it needs ampscope " +
                                              std::to_string(header.major) + ".x or newer");
    }
    trace_.major = header.major;
    trace_.minor = header.minor;
    take(header.size);
    return std::nullopt;
  }

  /// Moves over bytes that are understood.
  void take(std::size_t bytes) {
    window_.drop(bytes);
    contents_.earn(bytes);
    records_.earn(bytes);
    search_.earn(bytes);
    trace_.damage.bytes_read += bytes;
  }

  void note(const std::string& reason) {
    if (trace_.damage.reason.empty()) trace_.damage.reason = reason;
  }

  /// Reads the frame at the front of the window, or passes over what is none. False: there is nothing more to read.
  bool read_frame(TraceBuilder& builder) {
    if (!window_.need(1)) return false;
    const FrameProbe frame = probe();
    std::string why = "is no frame of a trace";
    if (frame.state == FrameState::complete) {
      if (frame.skippable || decompress(frame, why)) {
        if (!frame.skippable) {
          builder.add_frame(content_);
          ++trace_.damage.frames_read;
        }
        take(frame.size);
        return true;
      }
      if (stopped_) return false;
    } else if (frame.state == FrameState::incomplete) {
      why = "is an incomplete frame";
    }
    return pass_damage(frame, why);
  }

  /// Looks at the frame at the front of the window and reads on until its end or the end of the file is there.
  FrameProbe probe() {
    while (true) {
      const FrameProbe frame = probe_frame(window_.view(), limits_.frame_content);
      if (frame.state != FrameState::incomplete || !window_.more()) return frame;
    }
  }

  bool decompress(const FrameProbe& frame, std::string& why) {
    // A frame that turns out to be damaged costs as much as a good one, so both are paid for.
    if (!contents_.take(frame.content)) {
      note("the records take more than " + std::to_string(limits_.memory_per_byte) +
           " times the size of the file: reading stopped at byte " + std::to_string(window_.offset()));
      lose_rest();
      return false;
    }
    std::string error;
    if (decompressor_.read_frame(window_.view().substr(0, frame.size), frame.content, content_, error)) return true;
    why = "is a damaged frame (" + error + ")";
    return false;
  }

  /// Searches for the next complete frame behind damage: an exit status that was appended behind an incomplete frame,
  /// or the rest of a file in which a byte went bad.
  bool pass_damage(const FrameProbe& frame, const std::string& why) {
    const std::uint64_t begin = window_.offset();
    const bool incomplete = frame.state == FrameState::incomplete;
    ++trace_.damage.regions_damaged;
    std::size_t skip = 1;
    while (pay_for_search()) {
      const std::size_t found = find_frame(window_.view(), skip);
      if (found == std::string_view::npos) {
        // The last three bytes may be the beginning of a magic.
        const std::size_t size = window_.view().size();
        const std::size_t keep = std::min<std::size_t>(size, 3);
        lose(size - keep);
        if (!window_.more()) {
          lose(keep);
          break;
        }
        skip = 0;
        continue;
      }
      lose(found);
      skip = 1;
      const FrameProbe next = probe();
      std::string unused;
      if (next.state == FrameState::complete && !next.skippable && decompress(next, unused)) {
        note("byte " + std::to_string(begin) + " to " + std::to_string(window_.offset() - 1) + " " + why);
        return true;
      }
      if (stopped_) break;
    }
    trace_.damage.truncated = incomplete && !stopped_;
    note("byte " + std::to_string(begin) + " to the end " + why);
    return false;
  }

  /// A place that looks like a frame and is none costs a walk over all that follows it, and a hostile file consists of
  /// such places. False: enough was searched, the rest is lost.
  bool pay_for_search() {
    if (search_.take(window_.view().size())) return true;
    lose_rest();
    return false;
  }

  void lose(std::size_t bytes) {
    window_.drop(bytes);
    search_.earn(bytes);
    trace_.damage.bytes_damaged += bytes;
  }

  void lose_rest() {
    stopped_ = true;
    const std::uint64_t total = std::max(source_.size(), window_.bytes_seen());
    trace_.damage.bytes_damaged += total - window_.offset();
  }

  Source& source_;
  Window window_;
  const std::string& name_;
  const Progress& progress_;
  const ReadLimits& limits_;
  Trace trace_;
  Budget contents_{limits_.memory_base, limits_.memory_per_byte};
  Budget records_{limits_.memory_base, limits_.memory_per_byte};
  Budget search_{limits_.memory_base, search_per_byte};
  Decompressor decompressor_;
  std::string content_;
  bool stopped_ = false;
};

std::variant<Trace, ReadError> read_from(Source& source, const std::string& name, const Progress& progress,
                                         const ReadLimits& limits) {
  try {
    return Reader(source, name, progress, limits).read();
  } catch (const std::bad_alloc&) {
    return ReadError{ReadErrorKind::cannot_open, name + " cannot be read: there is not enough memory for it"};
  }
}

}  // namespace

std::variant<Trace, ReadError> read_trace(const std::string& path, const Progress& progress, const ReadLimits& limits) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      return ReadError{ReadErrorKind::cannot_open,
                       path + " does not exist; `ampscope run -- <command>` writes a trace"};
    }
    return ReadError{ReadErrorKind::cannot_open, path + " cannot be read: " + std::generic_category().message(error)};
  }
  struct stat status{};
  const bool known = fstat(descriptor, &status) == 0;
  FileSource source(descriptor, known && S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0);
  if (known && S_ISDIR(status.st_mode)) {
    return ReadError{ReadErrorKind::cannot_open, path + " is a folder; name the trace in it"};
  }
  return read_from(source, path, progress, limits);
}

std::variant<Trace, ReadError> read_trace_bytes(const std::string& bytes, const std::string& name,
                                                const ReadLimits& limits) {
  MemorySource source(bytes);
  return read_from(source, name, {}, limits);
}

bool looks_like_trace(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  FileSource source(descriptor, 0);
  std::string front(header_size, '\0');
  std::size_t done = 0;
  while (done < front.size()) {
    const std::int64_t count = source.read(front.data() + done, front.size() - done);
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return read_header(front).state == HeaderState::good;
}

}  // namespace ampscope::trace
