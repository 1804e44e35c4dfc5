#include "cli/output/terminal.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

int descriptor(Stream stream) {
  return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO;
}

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool forced(const char* name) {
  return !variable(name).empty() && variable(name) != "0";
}

}  // namespace

bool is_terminal(Stream stream) {
  return isatty(descriptor(stream)) == 1;
}

int terminal_width(Stream stream) {
  constexpr int usual = 80;
  constexpr int widest = 120;
  const std::string_view asked = variable("COLUMNS");
  int columns = 0;
  std::from_chars(asked.data(), asked.data() + asked.size(), columns);
  winsize size{};
  if (columns <= 0 && ioctl(descriptor(stream), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns > 0 ? std::min(columns, widest) : usual;
}

bool use_colour(Stream stream) {
  if (!variable("NO_COLOR").empty()) return false;
  if (forced("FORCE_COLOR") || forced("CLICOLOR_FORCE")) return true;
  return is_terminal(stream) && variable("TERM") != "dumb";
}

bool print(Stream stream, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(descriptor(stream), text.data() + at, text.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += static_cast<std::size_t>(written);
  }
  return true;
}

ProgressLine::ProgressLine(const std::string& what)
    : what_(reporters::printable(what)),
      active_(is_terminal(Stream::err) && variable("TERM") != "dumb"),
      next_(std::chrono::steady_clock::now() + std::chrono::milliseconds(500)) {}

ProgressLine::~ProgressLine() {
  if (drawn_) print(Stream::err, "\r\x1b[K");
}

void ProgressLine::update(std::uint64_t done, std::uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!active_ || now < next_ || total == 0) return;
  next_ = now + std::chrono::milliseconds(100);
  drawn_ = true;
  const std::string percent = fmt::format("  {} %", done * 100 / total);
  const int room = terminal_width(Stream::err) - static_cast<int>(percent.size()) - 1;
  print(Stream::err, "\r" + reporters::shorten(what_, room) + percent + "\x1b[K");
}

}  // namespace ampscope::cli
