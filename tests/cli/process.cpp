#include "tests/cli/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ampscope::cli::testing {
namespace {

namespace fs = std::filesystem;

/// In the new process. Never returns.
[[noreturn]] void become(const Start& start) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::string_view(*entry).find('='));
    const bool ours = name.starts_with("AMPSCOPE_") || name == "NO_COLOR" || name == "FORCE_COLOR" ||
                      name == "CLICOLOR_FORCE" || name == "COLUMNS" || start.environment.contains(name);
    if (!ours) entries.emplace_back(*entry);
  }
  for (const auto& [name, value] : start.environment)
    entries.push_back(name + "=" + value);
  std::vector<std::string> words = start.command;
  std::vector<char*> argv;
  std::vector<char*> envp;
  for (std::string& word : words)
    argv.push_back(word.data());
  for (std::string& entry : entries)
    envp.push_back(entry.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  if (!start.directory.empty() && chdir(start.directory.c_str()) != 0) _exit(126);
  execvpe(argv[0], argv.data(), envp.data());
  _exit(126);
}

int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

class Deadline {
 public:
  [[nodiscard]] int milliseconds_left() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
  }

 private:
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::minutes(1);
};

/// What can be read now; false at the end.
bool take(int descriptor, std::string& into) {
  std::array<char, 65536> buffer{};
  const ssize_t got = read(descriptor, buffer.data(), buffer.size());
  if (got > 0) into.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

Result run(const Start& start) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipes");
  }
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);  // a group of its own, as a shell makes one: in ours SIGTSTP may stop nothing
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    become(start);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  // The inputs of these tests fit into a pipe.
  if (!start.input.empty() && write(in[1], start.input.data(), start.input.size()) < 0)
    throw std::runtime_error("stdin");
  close(in[1]);

  Result result;
  const Deadline deadline;
  bool told = !start.when_ready;
  std::array<pollfd, 2> streams = {{{out[0], POLLIN, 0}, {err[0], POLLIN, 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    if (poll(streams.data(), streams.size(), deadline.milliseconds_left()) == 0) {
      kill(child, SIGKILL);
      result.errors += "\nTHE TEST KILLED IT AFTER A MINUTE\n";
      break;
    }
    if (streams[0].revents != 0 && !take(out[0], result.output)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !take(err[0], result.errors)) streams[1].fd = -1;
    if (!told && result.output.find("ready") != std::string::npos) {
      told = true;
      start.when_ready(child);
    }
  }
  close(out[0]);
  close(err[0]);
  result.status = status_of(child);
  return result;
}

Result run_on_terminal(const Start& start, const std::string& typed) {
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 40;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) become(start);

  Result result;
  const Deadline deadline;
  bool told = typed.empty();
  pollfd stream = {terminal, POLLIN, 0};
  while (true) {
    if (poll(&stream, 1, deadline.milliseconds_left()) == 0) {
      kill(child, SIGKILL);
      result.errors += "\nTHE TEST KILLED IT AFTER A MINUTE\n";
      break;
    }
    if (!take(terminal, result.output)) break;
    if (!told && result.output.find("ready") != std::string::npos) {
      told = true;
      if (write(terminal, typed.data(), typed.size()) < 0) throw std::runtime_error("terminal");
    }
  }
  result.status = status_of(child);
  close(terminal);
  return result;
}

Folder::Folder() {
  std::string name = fs::temp_directory_path().string() + "/ampscope-test.XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder");
  path_ = name;
}

Folder::~Folder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

void Folder::write(const std::string& name, const std::string& content) const {
  fs::create_directories(fs::path(path_ + "/" + name).parent_path());
  std::ofstream(path_ + "/" + name, std::ios::binary) << content;
}

std::string Folder::read(const std::string& name) const {
  std::ifstream file(path_ + "/" + name, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

bool Folder::has(const std::string& name) const {
  return fs::exists(path_ + "/" + name);
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ampscope::cli::testing
