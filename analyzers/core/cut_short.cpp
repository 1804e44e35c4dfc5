#include "analyzers/core/cut_short.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include "trace/autograd.h"

namespace ampscope::analyzers {

namespace {

/// Whether an exception was raised over values: "Input contains NaN", "found invalid values". An assertion without
/// words may have been about anything; beside values that are not finite it was about them.
bool speaks_of_values(std::string_view text) {
  if (text.find("invalid values") != std::string_view::npos || text == "AssertionError") return true;
  static constexpr std::array<std::string_view, 13> words = {
      "nan",       "nans",     "inf",   "infs",  "infinite", "infinity", "finite",
      "nonfinite", "isfinite", "isnan", "isinf", "overflow", "diverged"};
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(i < text.size() ? text[i] : ' ');
    if (std::isalpha(letter) != 0) {
      word += static_cast<char>(std::tolower(letter));
    } else {
      if (std::find(words.begin(), words.end(), word) != words.end()) return true;
      word.clear();
    }
  }
  return false;
}

bool ended_for_its_values(const trace::Trace& trace) {
  if (!trace.end) return false;
  if (trace.end->how == "exception") return speaks_of_values(trace.end->detail);
  return trace.end->how == "exit" && trace.exit && trace.exit->status != 0;
}

}  // namespace

std::optional<std::int64_t> step_cut_short(const TraceView& view) {
  const trace::Trace& trace = view.trace();
  if (!ended_for_its_values(trace)) return std::nullopt;
  std::int64_t finished = 0;
  for (const trace::StepRun& run : trace.step_runs) {
    const auto events = view.pattern_events(run);
    const bool trained = std::any_of(events.begin(), events.end(), [](const trace::ProtocolEvent& event) {
      return event.kind == trace::EventKind::backward || event.kind == trace::EventKind::optimizer_step;
    });
    if (trained) finished = std::max(finished, run.first_step + run.count);
  }
  for (const trace::NonfiniteEvent& event : trace.nonfinite_events) {
    if (event.step < finished || event.kind == trace::OriginKind::absorber) continue;
    const trace::Site* const site = view.site(event.site);
    if (site != nullptr && site->phase == trace::Phase::forward && trace::depends_on_weights(event)) return event.step;
  }
  return std::nullopt;
}

}  // namespace ampscope::analyzers
