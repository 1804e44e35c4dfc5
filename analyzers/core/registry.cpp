#include "analyzers/core/registry.h"

#include <algorithm>
#include <cctype>

#include "analyzers/core/rule_table.h"

namespace ampscope::analyzers {

namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::span<const Rule* const> all_rules() noexcept {
  return rule_table();
}

const Rule* find_rule(std::string_view code_or_name) noexcept {
  for (const Rule* rule : rule_table()) {
    if (equal_ignoring_case(code_or_name, rule->code) || equal_ignoring_case(code_or_name, rule->name)) return rule;
  }
  return nullptr;
}

std::string_view rule_page(std::string_view code) noexcept {
  const auto rules = rule_table();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (equal_ignoring_case(code, rules[i]->code)) return rule_pages()[i];
  }
  return {};
}

}  // namespace ampscope::analyzers
