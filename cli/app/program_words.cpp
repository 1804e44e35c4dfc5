#include "cli/app/program_words.h"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string_view>

namespace ampscope::cli {
namespace {

bool takes_value(const CLI::App& run, const std::string& name) {
  const CLI::Option* const option = run.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_min() > 0;
}

/// Whether the word after this option belongs to it.
bool needs_next(const CLI::App& run, std::string_view word) {
  if (word.starts_with("--")) return word.find('=') == std::string_view::npos && takes_value(run, std::string(word));
  // Single letters may stand together; one that takes a value takes the rest of the word, if there is a rest.
  for (std::size_t i = 1; i < word.size(); ++i) {
    if (takes_value(run, std::string("-") + word[i])) return i + 1 == word.size();
  }
  return false;
}

}  // namespace

std::vector<std::string> take_program(const CLI::App& run, std::vector<std::string>& arguments) {
  std::size_t at = 0;
  std::size_t program = arguments.size();
  while (at < arguments.size()) {
    const std::string& word = arguments[at];
    if (word == "--") {
      program = at + 1;
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      program = at;
      break;
    }
    at += needs_next(run, word) ? 2 : 1;
  }
  std::vector<std::string> words;
  if (program < arguments.size())
    words.assign(arguments.begin() + static_cast<std::ptrdiff_t>(program), arguments.end());
  if (at < arguments.size()) arguments.resize(at);
  return words;
}

}  // namespace ampscope::cli
