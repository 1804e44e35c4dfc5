#include "cli/doctor/torch_search.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <sys/wait.h>

#include "cli/output/render.h"
#include "cli/process/program.h"

namespace ampscope::cli {
namespace {

// find_spec and the text of version.py: an import of torch takes seconds and may fail for reasons of its own.
constexpr const char* question = R"(
import importlib.util, json, os, re, sys
found = {'version': sys.version.split()[0], 'prefix': sys.prefix}
try:
    spec = importlib.util.find_spec('torch')
except (ImportError, ValueError):
    spec = None
if spec is not None and spec.origin:
    found['package'] = os.path.dirname(spec.origin)
    try:
        with open(os.path.join(found['package'], 'version.py'), encoding='utf-8') as file:
            text = file.read()
        for name, key in (('__version__', 'torch'), ('cuda', 'cuda')):
            match = re.search(r'^%s\b[^=]*= *[\'"]([^\'"]+)' % name, text, re.M)
            if match:
                found[key] = match[1]
    except OSError:
        pass
print(json.dumps(found))
)";

/// What `command` writes to its stdout, and its exit status.
std::pair<std::string, int> output_of(const std::string& command) {
  std::string text;
  // NOLINTNEXTLINE(bugprone-command-processor): the words are quoted where the command is made.
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {"", -1};
  std::array<char, 4096> buffer{};
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), got);
  const int status = pclose(pipe);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

}  // namespace

TorchSearch find_torch(const std::string& python) {
  TorchSearch search;
  if (!python.empty()) {
    search.python = find_program(python).value_or("");
    if (search.python.empty()) {
      search.error = fmt::format("'{}' is no program", python);
      return search;
    }
  } else {
    search.python = find_program("python3").value_or(find_program("python").value_or(""));
    if (search.python.empty()) return search;
  }
  const auto [text, status] = output_of(shell_command({search.python, "-c", question}) + " 2>/dev/null");
  const auto answer = nlohmann::json::parse(text, nullptr, false);
  if (status != 0 || !answer.is_object()) {
    search.error = "it does not run";
    return search;
  }
  search.python_version = answer.value("version", "");
  search.prefix = answer.value("prefix", "");
  search.package = answer.value("package", "");
  search.version = answer.value("torch", "");
  search.cuda = answer.value("cuda", "");
  return search;
}

TorchMinor torch_minor(const std::string& version) {
  TorchMinor minor;
  const char* const end = version.data() + version.size();
  const auto [dot, error] = std::from_chars(version.data(), end, minor.major);
  if (error != std::errc{} || dot == end || *dot != '.') return {};
  if (std::from_chars(dot + 1, end, minor.minor).ec != std::errc{}) return {};
  return minor;
}

}  // namespace ampscope::cli
