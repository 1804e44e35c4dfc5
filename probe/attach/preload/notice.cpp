#include "probe/attach/preload/notice.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

namespace ampscope::attach {
namespace {

constexpr unsigned long line_size = 2048;

/// Appends `text` as the inside of a JSON string and gives the new length; what does not fit is left out.
unsigned long append_escaped(char* line, unsigned long length, const char* text) {
  for (; *text && length + 8 < line_size; ++text) {
    const auto byte = static_cast<unsigned char>(*text);
    if (byte == '"' || byte == '\\') {
      line[length++] = '\\';
      line[length++] = *text;
    } else if (byte < 0x20) {
      length += static_cast<unsigned long>(snprintf(line + length, line_size - length, "\\u%04x", byte));
    } else {
      line[length++] = *text;
    }
  }
  return length;
}

void write_all(int descriptor, const char* bytes, unsigned long size) {
  // One write: on a descriptor in append mode the lines of several processes do not mix. There is nobody to tell if it
  // fails.
  [[maybe_unused]] const ssize_t written = write(descriptor, bytes, size);
}

}  // namespace

void report_failure(const char* sentence) {
  char line[line_size];
  const int shown = snprintf(line, sizeof line, "ampscope: %s; the run goes on without it\n", sentence);
  if (shown > 0) {
    const auto size = static_cast<unsigned long>(shown);
    write_all(STDERR_FILENO, line, size < sizeof line ? size : sizeof line - 1);
  }
  const char* status_file = getenv("AMPSCOPE_STATUS_FILE");
  if (status_file && *status_file) {
    const int descriptor = open(status_file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor >= 0) {
      auto length = static_cast<unsigned long>(snprintf(line, sizeof line, "{\"level\":\"error\",\"message\":\""));
      length = append_escaped(line, length, sentence);
      // append_escaped leaves eight bytes free.
      line[length++] = '"';
      line[length++] = '}';
      line[length++] = '\n';
      write_all(descriptor, line, length);
      close(descriptor);
    }
  }
  unsetenv("AMPSCOPE_OUTPUT");
}

}  // namespace ampscope::attach
