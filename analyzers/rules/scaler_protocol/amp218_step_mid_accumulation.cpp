#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/core/scalars.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

/// What one optimizer's accumulation windows were like.
struct Windows {
  StepSpan across;  ///< steps with gradients from both sides of an update
  std::int64_t across_site = trace::none;
  StepSpan reused;  ///< steps with gradients that had been applied before, in windows that are cleared in the end
  StepSpan pending;
  std::int64_t reused_site = trace::none;
  std::int64_t cleared = 0;  ///< windows that ended by clearing after such a step
  std::vector<int> lengths;  ///< backward passes in each window, of one and the same loss
  std::vector<std::int64_t> last_steps;
  std::int64_t step_site = trace::none;
  std::int64_t loss_site = trace::none;
  bool one_loss = true;        ///< all passes of the running window began at the same site
  bool added_to_used = false;  ///< gradients that a step had used, since the last step
  bool other_divisor = false;  ///< the loss was divided by different numbers: the program counts for itself
};

constexpr std::size_t most_windows = 100'000;

class Collector {
 public:
  explicit Collector(const TraceView& view) : view_(view) {}

  std::map<std::int64_t, Windows> collect() {
    walk_protocol(view_, [this](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
      if (event.kind == EventKind::backward && (event.flags & event_flag::gradients_only) == 0) {
        pass(event, before);
      } else if (event.kind == EventKind::optimizer_step || event.kind == EventKind::optimizer_skip) {
        step(span, event, before);
      }
    });
    return std::move(windows_);
  }

 private:
  void pass(const trace::ProtocolEvent& event, const ProtocolState& before) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(view_.trace().optimizers.size()) && i < 64; ++i) {
      if ((event.optimizers >> i & 1U) == 0) continue;
      Windows& windows = windows_[i];
      const bool added = (event.added >> i & 1U) != 0 && before.of(i).present;
      if (added && before.of(i).used) {
        // No mistake before it is stepped with: a generator's loss reaches the discriminator as well.
        windows.added_to_used = true;
      } else if (!added) {
        windows.added_to_used = false;
        // The gradients were cleared: what was applied more than once was a window.
        if (windows.pending.count > 0) {
          ++windows.cleared;
          extend(windows.reused, windows.pending);
        }
        windows.pending = {};
        windows.loss_site = event.site;
        windows.one_loss = true;
      }
      windows.one_loss = windows.one_loss && windows.loss_site == event.site;
      windows.other_divisor |= (event.flags & event_flag::other_divisor) != 0;
    }
  }

  void step(const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    const GradientState& gradients = before.of(event.object);
    Windows& windows = windows_[event.object];
    windows.step_site = event.site;
    if (windows.added_to_used) extend(windows.pending, span);
    windows.added_to_used = false;
    if (gradients.across_update && gradients.any_scaled) {
      if (windows.across_site == trace::none) windows.across_site = event.site;
      extend(windows.across, span);
    }
    if (!windows.one_loss || gradients.inside_step || !gradients.certain) return;
    for (std::int64_t i = 0; i < span.count && windows.lengths.size() < most_windows; ++i) {
      windows.lengths.push_back(gradients.passes);
      windows.last_steps.push_back(span.first + i);
    }
  }

  const TraceView& view_;
  std::map<std::int64_t, Windows> windows_;
};

struct Irregular {
  int usual = 0;
  int other = 0;
  std::int64_t count = 0;
  StepSpan steps;
};

/// Whether a loss is divided by this number on its way to the backward pass, or multiplied by its inverse.
bool divided_by(const TraceView& view, std::int64_t loss, int number) {
  const std::vector<bool> reached = view.ancestors(loss);
  return std::any_of(view.trace().sites.begin(), view.trace().sites.end(), [&](const trace::Site& site) {
    if (!reached[static_cast<std::size_t>(site.id)] || site.outputs.empty()) return false;
    const trace::TensorType& output = site.outputs.front();
    if (!output.requires_grad || !output.shape.empty()) return false;
    return std::abs(factor_of(site) * number - 1) < 1e-6;
  });
}

/// Windows that no short last window of an epoch explains: longer than usual, or a short one at the very beginning. A
/// length is wrong only where the loss is divided by a fixed number of passes; a program that divides by what it has
/// counted (rows, tokens), or not at all, may make its windows as long as it likes.
std::optional<Irregular> find_irregular(const TraceView& view, const Windows& windows) {
  const std::vector<int>& lengths = windows.lengths;
  if (lengths.size() < 4 || windows.other_divisor) return std::nullopt;
  std::map<int, std::int64_t> counts;
  for (const int length : lengths)
    ++counts[length];
  const auto usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (usual->first < 2 || 2 * usual->second < static_cast<std::int64_t>(lengths.size())) return std::nullopt;
  if (!divided_by(view, windows.loss_site, usual->first)) return std::nullopt;
  Irregular result;
  result.usual = usual->first;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const bool alone =
        (i == 0 || lengths[i - 1] != lengths[i]) && (i + 1 == lengths.size() || lengths[i + 1] != lengths[i]);
    const bool first_short = i == 0 && lengths[0] < usual->first && lengths[1] == usual->first;
    // A stretch of other windows is a setting that was changed, not a slip.
    if (!alone || (lengths[i] <= usual->first && !first_short)) continue;
    if (result.count == 0) result.other = lengths[i];
    ++result.count;
    extend(result.steps, {windows.last_steps[i], windows.last_steps[i], 1});
  }
  return result.count > 0 ? std::optional(result) : std::nullopt;
}

Finding make(const RuleContext& context, std::int64_t site, const StepSpan& steps, const char* op) {
  Finding finding = context.finding();
  finding.culprit = context.culprit(site);
  finding.culprit.op = op;
  finding.culprit.phase = trace::Phase::scaler;
  finding.steps = steps;
  return finding;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const char* const fix =
      "if (i + 1) % accumulate == 0 or i + 1 == len(loader): scaler.step(optimizer); scaler.update(); "
      "optimizer.zero_grad()";
  if (const Refusal refusal = first_refusal(view, RefusalCause::update_without_step); refusal.steps.count > 0) {
    Finding finding = make(context, refusal.site, refusal.steps, "GradScaler.update");
    finding.severity = Severity::error;
    finding.title = "the scaler is updated where no optimizer has stepped";
    finding.message =
        "A backward pass has run, but nothing was unscaled or stepped before update(): there is nothing to decide by, "
        "so the scaler raised an exception.";
    finding.proof = "backward, then update() without a step";
    finding.evidence = {{"raised", 1.0}};
    finding.fix = "scaler.update() only where scaler.step(optimizer) is called, at the end of the window";
    findings.push_back(std::move(finding));
  }
  for (const auto& [optimizer, windows] : Collector(view).collect()) {
    const std::string name = optimizer_name(view, optimizer);
    if (windows.across.count > 0) {
      Finding finding = make(context, windows.across_site, windows.across, "GradScaler.update");
      finding.title = "the scaler is updated inside an accumulation window";
      finding.message = fmt::format(
          "The gradients that {} steps with were added up before and after an update of the scaler: when the scale "
          "changes in between, micro-batches of one window are scaled differently and unscaled alike.",
          name);
      finding.proof =
          fmt::format("{} with gradients from both sides of an update", plural(windows.across.count, "step"));
      finding.evidence = {{"optimizer", name}, {"steps", static_cast<double>(windows.across.count)}};
      finding.fix = fix;
      findings.push_back(std::move(finding));
      continue;
    }
    if (windows.cleared >= 2) {
      Finding finding = make(context, windows.step_site, windows.reused, "GradScaler.step");
      finding.title = "the optimizer steps inside an accumulation window";
      finding.message = fmt::format(
          "{} stepped in {} with gradients that it had applied before: they are cleared only at the end of a window, "
          "but "
          "the step is taken on every micro-batch.",
          name, plural(windows.reused.count, "step"));
      finding.proof = fmt::format("{} on gradients already applied · cleared {}", plural(windows.reused.count, "step"),
                                  plural(windows.cleared, "time"));
      finding.evidence = {{"optimizer", name}, {"steps", static_cast<double>(windows.reused.count)}};
      finding.fix = fix;
      findings.push_back(std::move(finding));
      continue;
    }
    if (const auto irregular = find_irregular(view, windows)) {
      Finding finding = make(context, windows.step_site, irregular->steps, "GradScaler.step");
      finding.title = "accumulation windows differ in length";
      finding.message = fmt::format(
          "{} usually steps after {} backward passes, but {} had {}: the loss is divided by a fixed {}, so gradients "
          "of "
          "such a window are {} times as large as the others'.",
          name, irregular->usual, plural(irregular->count, "window"), irregular->other, irregular->usual,
          number(static_cast<double>(irregular->other) / irregular->usual));
      finding.proof = fmt::format("{} passes where {} are usual · {}", irregular->other, irregular->usual,
                                  plural(irregular->count, "window"));
      finding.evidence = {{"optimizer", name},
                          {"usual_passes", static_cast<double>(irregular->usual)},
                          {"other_passes", static_cast<double>(irregular->other)},
                          {"windows", static_cast<double>(irregular->count)}};
      finding.fix = fix;
      findings.push_back(std::move(finding));
    }
  }
}

constexpr std::array<std::string_view, 3> symptom_of = {"AMP204", "AMP208", "AMP221"};

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp218;
const Rule rule_amp218 = {
    .code = "AMP218",
    .name = "step-mid-accumulation",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "an optimizer steps or the scaler is updated inside an accumulation window, or windows differ in length",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
