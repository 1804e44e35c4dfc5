#include "cli/process/program.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include "reporters/common/text.h"

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

bool executable_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

/// A 64-bit ELF file without an interpreter: the kernel starts it without the dynamic loader, so nothing can be
/// preloaded.
bool statically_linked(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0) return false;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return false;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

bool is_python(const std::string& program) {
  const std::string name = fs::path(program).filename().string();
  return name.starts_with("python") || name.starts_with("pypy");
}

/// The first option of a Python command line that keeps sitecustomize or PYTHONPATH away, "" for none.
std::string isolating_option(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return {};
    // Single letters may stand together (-IB); c, m, W and X take what follows, and c and m end the options.
    for (const char letter : std::string_view(word).substr(1)) {
      if (std::string_view("IES").find(letter) != std::string_view::npos) return word;
      if (letter == 'c' || letter == 'm') return {};
      if (letter == 'W' || letter == 'X') {
        if (word.back() == letter) ++i;
        break;
      }
    }
  }
  return {};
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) return executable_file(name) ? std::optional(name) : std::nullopt;
  const char* const variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/bin:/usr/bin";
  while (true) {
    const std::size_t colon = folders.find(':');
    const std::string_view folder = folders.substr(0, colon);
    const fs::path path = fs::path(folder.empty() ? "." : folder) / name;
    if (executable_file(path)) return path.string();
    if (colon == std::string_view::npos) return std::nullopt;
    folders.remove_prefix(colon + 1);
  }
}

std::string why_not_startable(const std::string& name) {
  if (find_program(name)) return {};
  std::error_code error;
  const bool has_folder = name.find('/') != std::string::npos;
  if (!fs::exists(name, error)) return has_folder ? "there is no such file" : "there is no such program in PATH";
  if (fs::is_directory(name, error)) return "it is a folder";
  if (name.ends_with(".py")) return fmt::format("it is not executable; use: python {}", name);
  if (!has_folder) return fmt::format("there is no such program in PATH; to start the file here use: ./{}", name);
  return fmt::format("it is not executable; use: chmod +x {}", name);
}

std::string why_not_observable(const std::vector<std::string>& command) {
  if (command.empty()) return {};
  const std::optional<std::string> program = find_program(command.front());
  if (!program) return {};
  if (is_python(*program)) {
    const std::string option = isolating_option(command);
    if (!option.empty()) {
      return fmt::format(
          "Python was started with {}, which keeps ampscope out; leave it away, or write `import ampscope` as the "
          "program's first line",
          option);
    }
  } else if (statically_linked(*program)) {
    return fmt::format("{} is statically linked, so nothing can be loaded into it; link it against the shared LibTorch",
                       reporters::printable(command.front()));
  }
  return {};
}

}  // namespace ampscope::cli
