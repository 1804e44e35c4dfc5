#include "cli/app/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace ampscope::cli {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Edits that make `b` of `a`, a swap of neighbours counted as one (restricted Damerau-Levenshtein distance).
std::size_t edits(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest = 64;  // longer words are no slips, and the table is quadratic
  if (word.empty() || word.size() > longest) return {};
  const std::string typed = lower(word);
  std::string best;
  std::size_t best_edits = 0;
  for (const std::string& candidate : candidates) {
    const std::string known = lower(candidate);
    const std::size_t distance = known.starts_with(typed) && typed.size() >= 3 ? 1 : edits(typed, known);
    if (distance > std::max<std::size_t>(1, std::min(typed.size(), known.size()) / 3)) continue;
    if (best.empty() || distance < best_edits) {
      best = candidate;
      best_edits = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

}  // namespace ampscope::cli
