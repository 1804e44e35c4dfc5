#include "trace/append_file.h"

#include <cerrno>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ampscope::trace {

namespace {

constexpr int flags = O_CLOEXEC | O_APPEND;
constexpr mode_t mode = 0666;

template <class Call>
auto retry(Call call) noexcept {
  decltype(call()) result{};
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

/// Writing beyond RLIMIT_FSIZE raises SIGXFSZ and writing to a pipe without a reader SIGPIPE: both would end the
/// training process. They are sent to the writing thread, so it can hold them off and take them out again.
class HoldSignals {
 public:
  HoldSignals() noexcept {
    sigemptyset(&held_);
    sigaddset(&held_, SIGXFSZ);
    sigaddset(&held_, SIGPIPE);
    active_ = pthread_sigmask(SIG_BLOCK, &held_, &before_) == 0;
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1 || sigismember(&pending, SIGPIPE) == 1;
  }
  ~HoldSignals() {
    if (!active_) return;
    const int error = errno;
    // One that was waiting before we wrote is somebody else's.
    if (!was_pending_) {
      const timespec now{};
      while (sigtimedwait(&held_, nullptr, &now) > 0) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;

 private:
  sigset_t held_{};
  sigset_t before_{};
  bool active_ = false;
  bool was_pending_ = false;
};

/// Opening a pipe for writing waits for a reader, for ever if none comes.
bool would_wait(const std::string& path) noexcept {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

}  // namespace

AppendFile::~AppendFile() {
  close();
}

int AppendFile::opened(int descriptor) noexcept {
  if (descriptor < 0) return errno;
  struct stat status{};
  if (fstat(descriptor, &status) != 0) {
    const int error = errno;
    ::close(descriptor);
    return error;
  }
  descriptor_ = descriptor;
  size_ = static_cast<std::uint64_t>(status.st_size);
  return 0;
}

int AppendFile::create(const std::string& path) noexcept {
  return opened(retry([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | flags, mode); }));
}

int AppendFile::overwrite(const std::string& path) noexcept {
  if (would_wait(path)) return ENOTSUP;
  // A regular file is replaced, not emptied: a process of an earlier run may still be writing to it. Anything else,
  // such as a link or a device, is the user's and stays.
  struct stat status{};
  if (lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && unlink(path.c_str()) == 0) {
    return create(path);
  }
  return opened(retry([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | flags, mode); }));
}

int AppendFile::open_existing(const std::string& path) noexcept {
  if (would_wait(path)) return ENOTSUP;
  return opened(retry([&] { return ::open(path.c_str(), O_RDWR | flags); }));
}

std::int64_t AppendFile::read_front(char* bytes, std::size_t size) const noexcept {
  std::size_t done = 0;
  while (done < size) {
    const auto count = retry([&] { return pread(descriptor_, bytes + done, size - done, static_cast<off_t>(done)); });
    if (count < 0) return -errno;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  return static_cast<std::int64_t>(done);
}

int AppendFile::append(std::string_view bytes) noexcept {
  const HoldSignals hold;
  std::size_t done = 0;
  int error = 0;
  while (done < bytes.size()) {
    const auto count = retry([&] { return ::write(descriptor_, bytes.data() + done, bytes.size() - done); });
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else {
      error = count < 0 ? errno : ENOSPC;
      break;
    }
  }
  if (error == 0) {
    size_ += done;
    return 0;
  }
  // Only our own bytes may go: another process may have appended to the file in the meantime.
  struct stat status{};
  if (done != 0 && fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) &&
      static_cast<std::uint64_t>(status.st_size) == size_ + done) {
    // Where it fails, the reader finds an incomplete frame and says so.
    [[maybe_unused]] const int cut = retry([&] { return ftruncate(descriptor_, static_cast<off_t>(size_)); });
  }
  return error;
}

int AppendFile::close() noexcept {
  if (descriptor_ < 0) return 0;
  // Not again on EINTR: the descriptor is gone in any case and may be another file's already.
  const int result = ::close(descriptor_) == 0 || errno == EINTR ? 0 : errno;
  descriptor_ = -1;
  return result;
}

void AppendFile::discard(const std::string& path) noexcept {
  struct stat status{};
  const bool empty_file =
      descriptor_ >= 0 && fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
  close();
  if (empty_file) unlink(path.c_str());
}

}  // namespace ampscope::trace
