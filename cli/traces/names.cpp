#include "cli/traces/names.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>
#include <string_view>

#include <unistd.h>

#include "cli/app/error.h"

namespace ampscope::cli {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::string escaped(char c) {
  constexpr std::string_view special = R"(\^$.|?*+()[]{})";
  return special.find(c) == std::string_view::npos ? std::string(1, c) : std::string("\\") + c;
}

/// A file name with placeholders, taken apart the way the probe expands it.
struct Name {
  std::string literal;                        ///< expanded; only of use without %p and %r
  std::string expression;                     ///< regular expression of all expansions
  std::size_t extension = std::string::npos;  ///< where in `expression` the last extension begins
  bool differs = false;                       ///< pid or rank are part of it
};

Name parse(const std::string& pattern) {
  Name name;
  const auto add = [&](const std::string& text) {
    for (const char c : text) {
      // As in the probe: the last dot begins the extension, unless the name begins with it.
      if (c == '.' && !name.expression.empty()) name.extension = name.expression.size();
      name.expression += escaped(c);
    }
    name.literal += text;
  };
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (next == 'p' || next == 'r') {
      name.expression += "[0-9]+";
      name.differs = true;
      ++i;
    } else if (next == 'h') {
      add(host_name());
      ++i;
    } else if (next == '%') {
      add("%");
      ++i;
    } else {
      add(std::string(1, pattern[i]));
    }
  }
  return name;
}

}  // namespace

OutputName::OutputName(const std::string& typed, const std::string& directory) {
  if (typed.empty()) throw UserError("the name of the trace is empty; give one with -o, such as -o run.ampscope");
  const fs::path relative = typed;
  if (!relative.has_filename())
    throw UserError(typed + " is a folder; give the name of a file, such as -o run.ampscope");
  const Name folder = parse(relative.parent_path().string());
  if (folder.differs) {
    throw UserError("-o " + typed + ": %p and %r can stand in the name of the file, not in the name of its folder");
  }

  fs::path base = folder.literal;
  if (!base.is_absolute()) base = fs::path(directory) / base;
  folder_ = base.lexically_normal().string();
  if (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
  // The probe expands what it gets, so a percent sign of the folder must look like one.
  const std::string file = relative.filename().string();
  const std::string slash = folder_ == "/" ? "" : "/";
  pattern_ = replaced(folder_, "%", "%%") + slash + file;

  const Name name = parse(file);
  if (!name.differs) path_ = folder_ + slash + name.literal;
  expression_ = name.expression;
  constexpr std::string_view further = R"((\.rank[0-9]+)?(\.[0-9]+)?)";
  expression_.insert(std::min(name.extension, expression_.size()), further);
}

bool OutputName::matches(const std::string& name) const {
  return std::regex_match(name, std::regex(expression_));
}

std::vector<std::string> OutputName::existing() const {
  const std::regex expression(expression_);
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (std::regex_match(entry->path().filename().string(), expression)) paths.push_back(entry->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace ampscope::cli
