#include "cli/process/child.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ampscope::cli {
namespace {

constexpr std::array<int, 8> passed_on = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

std::atomic<pid_t> child_pid{0};
static_assert(std::atomic<pid_t>::is_always_lock_free, "it is read in a signal handler");

/// Stops this process as SIGTSTP does by default, which the kernel does not do where no shell could continue it.
void stop_here() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  struct sigaction ours{};
  sigset_t only;
  sigset_t mask;
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  sigaction(SIGTSTP, &standard, &ours);
  raise(SIGTSTP);                          // held back while its handler runs …
  sigprocmask(SIG_UNBLOCK, &only, &mask);  // … and taken here; it goes on with SIGCONT
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGTSTP, &ours, nullptr);
}

/// Only what is safe in a signal handler.
void pass_on(int signal, siginfo_t* info, void* /*context*/) {
  const int saved = errno;
  const pid_t child = child_pid.load();
  // SI_KERNEL: the terminal sent it, to the whole process group.
  if (info->si_code != SI_KERNEL && child > 0) kill(child, signal);
  if (signal == SIGTSTP) stop_here();
  errno = saved;
}

/// Handlers while the program runs. The old ones are restored in the program before exec and here after its end.
class SignalRelay {
 public:
  SignalRelay() {
    struct sigaction action{};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
      sigaction(passed_on[i], nullptr, &old_[i]);
      if (old_[i].sa_handler != SIG_IGN) sigaction(passed_on[i], &action, nullptr);
    }
  }
  ~SignalRelay() { restore(); }
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  void restore() const {
    for (std::size_t i = 0; i < passed_on.size(); ++i)
      sigaction(passed_on[i], &old_[i], nullptr);
  }

 private:
  std::array<struct sigaction, passed_on.size()> old_{};
};

/// This process's environment with the changes made, in the form exec takes.
std::vector<std::string> make_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) entries.emplace_back(text);
  }
  for (const auto& [name, value] : changes)
    entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words)
    out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command, const std::map<std::string, std::string>& changes) {
  std::vector<std::string> words = command;
  std::vector<std::string> entries = make_environment(changes);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(entries);

  // exec closes the writing end; when it fails, the error number comes through instead.
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return {false, fmt::format("cannot make a pipe ({})", std::strerror(errno)), 0};
  }

  // No signal is handled between the handlers' installation and the moment the child is known and itself again.
  sigset_t all;
  sigset_t old_mask;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &old_mask);
  const SignalRelay relay;
  const pid_t child = fork();
  if (child == 0) {
    relay.restore();
    sigprocmask(SIG_SETMASK, &old_mask, nullptr);
    execvpe(argv[0], argv.data(), envp.data());
    const int reason = errno;
    [[maybe_unused]] const ssize_t written = write(pipe_ends[1], &reason, sizeof reason);
    _exit(125);
  }
  const int fork_error = errno;
  child_pid = child > 0 ? child : 0;
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  close(pipe_ends[1]);
  if (child < 0) {
    close(pipe_ends[0]);
    return {false, fmt::format("cannot start a process ({})", std::strerror(fork_error)), 0};
  }

  int reason = 0;
  ssize_t got = 0;
  do {
    got = read(pipe_ends[0], &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  close(pipe_ends[0]);

  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  child_pid = 0;
  if (got == static_cast<ssize_t>(sizeof reason)) return {false, std::strerror(reason), 0};
  return {true, {}, shell_status(status)};
}

}  // namespace ampscope::cli
