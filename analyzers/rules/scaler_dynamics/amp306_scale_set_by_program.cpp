#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/replay.h"

namespace ampscope::analyzers {

namespace {

struct Words {
  const char* title;
  const char* why;
  const char* fix;
};

Words words_of(Disagreement kind) {
  switch (kind) {
    case Disagreement::assigned:
      return {"the program sets the loss scale itself", "It was given to update().",
              "scaler.update() without an argument lets the scaler follow the gradients"};
    case Disagreement::changed_between:
      return {"the loss scale changes between two updates",
              "Somebody else than update() moved it or its growth tracker: a state that was loaded, or an assignment.",
              "nothing to do where a checkpoint was loaded; otherwise leave the scale to scaler.update()"};
    case Disagreement::settings_changed:
      return {"the settings of the scaler change during the run",
              "Growth factor, backoff factor or growth interval are not those of the update before.",
              "nothing to do where that is meant; the report shows the settings of the first update"};
    case Disagreement::not_as_computed:
      return {"the scale does not follow the arithmetic of GradScaler",
              "The scaler's own update gave another result, as a subclass with rules of its own does.",
              "read predictions of `ampscope tune` with care: they follow torch.amp.GradScaler"};
  }
  return {};
}

/// Skipped steps in a row, the most of them, after which the program has kept the scale from coming down in this way.
std::int64_t kept_up(const TraceView& view, const std::vector<ScalerDisagreement>& disagreements, Disagreement kind) {
  std::int64_t most = 0;
  std::int64_t in_a_row = 0;
  std::int64_t previous = trace::none;
  for (const ScalerDisagreement& at : disagreements) {
    if (at.kind != kind) continue;
    // Where it was given, `expected` is what it was before; the scaler itself would have lowered it.
    const bool higher =
        kind == Disagreement::assigned ? at.recorded.scale >= at.expected.scale : at.recorded.scale > at.expected.scale;
    const bool held = higher && view.skipped(at.step);
    in_a_row = !held ? 0 : at.step == previous + 1 ? in_a_row + 1 : 1;
    previous = at.step;
    most = std::max(most, in_a_row);
  }
  return most;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const trace::Scaler& scaler : view.trace().scalers) {
    const std::vector<ScalerDisagreement> disagreements = replay(view.updates(scaler.id)).disagreements;
    for (const Disagreement kind : {Disagreement::assigned, Disagreement::changed_between,
                                    Disagreement::settings_changed, Disagreement::not_as_computed}) {
      Finding finding = context.finding();
      const ScalerDisagreement* first = nullptr;
      for (const ScalerDisagreement& at : disagreements) {
        if (at.kind != kind) continue;
        if (first == nullptr) first = &at;
        extend(finding.steps, {at.step, at.step, 1});
      }
      if (first == nullptr) continue;
      const Words words = words_of(kind);
      finding.culprit.op = "GradScaler";
      finding.culprit.phase = trace::Phase::scaler;
      if (scaler.source.known()) finding.culprit.source = scaler.source;
      finding.title = words.title;
      finding.message = words.why;
      finding.proof = fmt::format("first in step {}", first->step);
      if (kind != Disagreement::settings_changed && first->recorded.scale != first->expected.scale) {
        finding.message += fmt::format(" In step {} it was {}; the updates lead to {}.", first->step,
                                       scale(static_cast<double>(first->recorded.scale)),
                                       scale(static_cast<double>(first->expected.scale)));
        finding.proof +=
            fmt::format(" · {} where the updates lead to {}", scale(static_cast<double>(first->recorded.scale)),
                        scale(static_cast<double>(first->expected.scale)));
      }
      finding.evidence = {{"updates", static_cast<double>(finding.steps.count)},
                          {"recorded_scale", static_cast<double>(first->recorded.scale)},
                          {"expected_scale", static_cast<double>(first->expected.scale)}};
      finding.fix = words.fix;
      constexpr std::int64_t many = 3;
      if (const std::int64_t skipped = kept_up(view, disagreements, kind); skipped >= many) {
        finding.severity = Severity::warning;
        finding.title = "the program keeps the loss scale up while steps are skipped";
        finding.message += fmt::format(
            " Gradients overflow at this scale, and since it does not come down the next steps are skipped as well: {} "
            "in a row.",
            count_of(skipped));
        finding.proof += fmt::format(" · {} skipped in a row", count_of(skipped));
        finding.evidence.emplace_back("skipped_in_a_row", static_cast<double>(skipped));
        finding.fix = words_of(Disagreement::assigned).fix;
      }
      findings.push_back(std::move(finding));
    }
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp306;
const Rule rule_amp306 = {
    .code = "AMP306",
    .name = "scale-set-by-program",
    .family = Family::scaler_dynamics,
    .severity = Severity::info,
    .summary = "the recorded loss scale does not follow from the scaler's own updates",
    .precision_fault = false,
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
