#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

struct Read {
  StepSpan steps;
  std::int64_t site = trace::none;
  std::vector<StepSpan> spans;  ///< the same steps one by one
  std::vector<StepSpan> other;  ///< in which it was divided by another number than the scale after the update
};

/// Updates that changed the scale in one of these steps.
std::vector<const trace::ScalerUpdate*> changes_in(const TraceView& view, const std::vector<StepSpan>& spans) {
  std::vector<const trace::ScalerUpdate*> changes;
  for (const trace::Scaler& scaler : view.trace().scalers) {
    for (const trace::ScalerUpdate* update : view.updates(scaler.id)) {
      if (update->scale_after == update->scale_before || update->scale_after == 0) continue;
      const bool inside = std::any_of(spans.begin(), spans.end(), [&](const StepSpan& span) {
        return span.first <= update->step && update->step <= span.last;
      });
      if (inside) changes.push_back(update);
    }
  }
  return changes;
}

/// Reads of the scaled loss after the update, together with a read of the scale after it.
Read find_reads(const TraceView& view) {
  Read found;
  bool updated = false;  // since the loss was scaled
  bool scale_known = false;
  bool divisor_kept = false;             // the program divides by a scale that it read before the update
  std::int64_t loss_site = trace::none;  // of a read after the update that may still meet the scale
  StepSpan loss_steps;
  const auto note = [&](std::int64_t site, const StepSpan& span) {
    if (found.site == trace::none) found.site = site;
    extend(found.steps, span);
    found.spans.push_back(span);
  };
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    switch (event.kind) {
      case EventKind::scale_loss:
        updated = scale_known = divisor_kept = false;
        loss_site = trace::none;
        break;
      case EventKind::scaler_update:
        updated = true;
        break;
      case EventKind::scale_read:
        // What nothing is divided by, or something of the next iteration, which has that scale.
        if ((event.flags & event_flag::by_inverse_scale) == 0 || (event.flags & event_flag::next_iteration) != 0) break;
        if (!updated) divisor_kept = divisor_kept || (event.flags & event_flag::by_inverse_scale) != 0;
        // What is only shown after the update divides nothing where something else does.
        if (!updated || (divisor_kept && (event.flags & event_flag::by_inverse_scale) == 0)) break;
        scale_known = !divisor_kept;  // else it may be kept for the next iteration
        if (loss_site != trace::none) note(loss_site, loss_steps);
        loss_site = trace::none;
        break;
      case EventKind::loss_read:
        if (!updated) break;
        if ((event.flags & event_flag::by_inverse_scale) != 0) {
          note(event.site, span);
        } else if ((event.flags & event_flag::to_number) != 0) {
          // As a number it is divided where no operator shows it: the scale is read just before or just after.
          if (scale_known) note(event.site, span);
          loss_site = event.site;
          loss_steps = span;
        } else if (event.site == found.site) {
          found.other.push_back(span);
        }
        break;
      default:
        loss_site = trace::none;
        break;
    }
  });
  return found;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const Read read = find_reads(view);
  // As long as the scale stays, one that was read before the update is the same number. Where it changed it is not.
  if (read.steps.count == 0 || !changes_in(view, read.other).empty()) return;
  StepSpan wrong;
  double factor = 1;
  for (const trace::ScalerUpdate* update : changes_in(view, read.spans)) {
    if (wrong.count == 0) factor = static_cast<double>(update->scale_before) / static_cast<double>(update->scale_after);
    extend(wrong, {update->step, update->step, 1});
  }
  Finding finding = context.finding();
  if (wrong.count == 0) finding.severity = Severity::info;
  finding.culprit = context.culprit(read.site);
  finding.culprit.phase = trace::Phase::scaler;
  finding.steps = wrong.count > 0 ? wrong : read.steps;
  finding.title = "the logged loss is divided by a scale that was read after update()";
  finding.message =
      "The loss was multiplied by the scale of its own step, but it is divided by the scale that update() left for the "
      "next one.";
  if (wrong.count > 0) {
    finding.message += fmt::format(" In {} the two differ; what was logged is off by a factor of {}.",
                                   plural(wrong.count, "step"), number(factor));
    finding.proof = fmt::format("off by {} in {}", number(factor), plural(wrong.count, "step"));
  } else {
    finding.message += " So far the scale has not changed in these steps.";
    finding.proof = "scale unchanged so far";
  }
  finding.evidence = {{"factor", factor}, {"wrong_steps", static_cast<double>(wrong.count)}};
  finding.fix = "log loss.item() of the loss before scaler.scale(loss)";
  findings.push_back(std::move(finding));
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp213;
const Rule rule_amp213 = {
    .code = "AMP213",
    .name = "scale-read-after-update",
    .family = Family::scaler_protocol,
    .severity = Severity::warning,
    .summary = "a loss is unscaled with a scale that was read after update()",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
