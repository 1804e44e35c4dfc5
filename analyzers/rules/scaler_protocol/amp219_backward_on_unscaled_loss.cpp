#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

struct Unscaled {
  StepSpan steps;
  std::int64_t loss_site = trace::none;
  bool mixed = false;  ///< another loss of the same step was scaled
};

std::map<std::int64_t, Unscaled> find_unscaled(const TraceView& view) {
  std::map<std::int64_t, Unscaled> found;
  std::map<std::int64_t, std::int64_t> plain_sites;  // latest pass of an unscaled loss, by optimizer
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == EventKind::backward && (event.flags & event_flag::scaled) == 0) {
      for (std::int64_t i = 0; i < 64; ++i) {
        if ((event.optimizers >> i & 1U) != 0) plain_sites[i] = event.site;
      }
    }
    if (event.kind != EventKind::unscale) return;
    const GradientState& gradients = before.of(event.object);
    if (!gradients.present || !gradients.certain || !gradients.plain || gradients.unscaled || gradients.used) return;
    if (view.scale_at(span.first).value_or(1) == 1) return;
    Unscaled& unscaled = found[event.object];
    if (unscaled.loss_site == trace::none) {
      const auto site = plain_sites.find(event.object);
      if (site != plain_sites.end()) unscaled.loss_site = site->second;
    }
    unscaled.mixed = unscaled.mixed || gradients.any_scaled;
    extend(unscaled.steps, span);
  });
  return found;
}

/// Gradients of a loss that one scaler scaled, unscaled by another.
struct Foreign {
  StepSpan steps;
  std::int64_t loss_site = trace::none;
  std::int64_t step_site = trace::none;
  std::int64_t scaled_by = trace::none;
  std::int64_t unscaled_by = trace::none;
  std::optional<double> factor;  ///< unknown where the scaler of the loss is never updated
};

/// Follows which scaler multiplied the loss that an optimizer's gradients come from. From their unscaling to the next
/// backward pass that scaler must be updated; where only another one is, that one has unscaled them.
class ForeignScalers {
 public:
  explicit ForeignScalers(const TraceView& view) : view_(view) {}

  std::map<std::int64_t, Foreign> find() {
    walk_protocol(view_, [this](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
      switch (event.kind) {
        case EventKind::scale_loss:
          if (event.site != trace::none) scaler_of_site_[event.site] = event.object;
          break;
        case EventKind::backward:
          pass(span, event);
          break;
        case EventKind::unscale:
          if (const auto open = open_.find(event.object); open != open_.end()) {
            open->second.unscaled = true;
            open->second.site = event.site;
            open->second.steps = span;
          }
          break;
        case EventKind::scaler_update:
          for (auto& [optimizer, open] : open_) {
            if (open.unscaled) open.updated.insert(event.object);
          }
          break;
        default:
          break;
      }
    });
    for (auto& [optimizer, open] : open_)
      close(optimizer, open);
    return std::move(found_);
  }

 private:
  struct Open {
    std::int64_t scaler = trace::none;
    std::int64_t loss_site = trace::none;
    std::int64_t site = trace::none;
    bool unscaled = false;
    StepSpan steps;
    std::set<std::int64_t> updated;
  };

  void pass(const StepSpan& span, const trace::ProtocolEvent& event) {
    if ((event.flags & event_flag::gradients_only) != 0) return;
    std::erase_if(open_, [this](const auto& entry) {
      if (entry.second.unscaled) close(entry.first, entry.second);
      return entry.second.unscaled;
    });
    const auto scaler = scaler_of_site_.find(event.site);
    for (std::int64_t i = 0; i < 64; ++i) {
      if ((event.optimizers >> i & 1U) == 0) continue;
      if ((event.flags & event_flag::scaled) == 0 || scaler == scaler_of_site_.end()) continue;
      if (scaler->second == trace::none) continue;
      Open& open = open_[i];
      open.scaler = scaler->second;
      open.loss_site = event.site;
      open.steps = span;
    }
  }

  void close(std::int64_t optimizer, const Open& open) {
    if (!open.unscaled || open.updated.empty() || open.updated.contains(open.scaler)) return;
    // The scale of a scaler that is gone may stand for one that was given its memory.
    const auto updates = view_.updates(open.scaler);
    if (!updates.empty() && updates.back()->step < open.steps.last) return;
    // One that is never updated: Python tells when a scaler is made, so that there it is none that is gone.
    if (updates.empty() && view_.run().language != "python") return;
    const std::int64_t other = *open.updated.begin();
    const double of_loss = updates.empty() ? 0 : view_.scale_at(open.steps.first, open.scaler).value_or(0);
    const double of_gradients = view_.scale_at(open.steps.first, other).value_or(0);
    if (of_gradients == 0 || of_loss == of_gradients) return;
    Foreign& foreign = found_[optimizer];
    if (foreign.steps.count == 0) {
      foreign.loss_site = open.loss_site;
      foreign.step_site = open.site;
      foreign.scaled_by = open.scaler;
      foreign.unscaled_by = other;
      if (of_loss != 0) foreign.factor = of_loss / of_gradients;
    }
    extend(foreign.steps, open.steps);
  }

  const TraceView& view_;
  std::map<std::int64_t, std::int64_t> scaler_of_site_;  ///< that last multiplied a loss there
  std::map<std::int64_t, Open> open_;                    ///< by optimizer
  std::map<std::int64_t, Foreign> found_;                ///< by optimizer
};

void report_foreign(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (view.trace().scalers.size() < 2) return;
  for (const auto& [optimizer, foreign] : ForeignScalers(view).find()) {
    if (foreign.steps.count < 2 && view.steps() > 2) continue;
    const std::string name = optimizer_name(view, optimizer);
    Finding finding = context.finding();
    finding.culprit = context.culprit(foreign.step_site);
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = foreign.steps;
    finding.title = "gradients are unscaled by another scaler than the one that scaled their loss";
    finding.message = fmt::format(
        "The loss at {} is multiplied by the scale of one scaler, and the gradients that {} steps with are divided by "
        "that of another{}, and overflows are counted by the wrong one.",
        view.describe(foreign.loss_site), name,
        foreign.factor ? fmt::format(": they come out {} times their size", number(*foreign.factor))
                       : ", while the first is never updated");
    finding.proof =
        foreign.factor ? fmt::format("gradients {} times their size in {}", number(*foreign.factor),
                                     plural(foreign.steps.count, "step"))
                       : fmt::format("scaled by one, unscaled by the other in {}", plural(foreign.steps.count, "step"));
    finding.evidence = {{"optimizer", name},
                        {"scaled_by", static_cast<double>(foreign.scaled_by)},
                        {"unscaled_by", static_cast<double>(foreign.unscaled_by)}};
    if (foreign.factor) finding.evidence.emplace_back("factor", *foreign.factor);
    finding.fix = "scale the loss, step and update with one and the same scaler";
    findings.push_back(std::move(finding));
  }
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  report_foreign(context, findings);
  const TraceView& view = context.view();
  const char* const fix = "scaler.scale(loss).backward()   instead of loss.backward()";
  if (const Refusal refusal = first_refusal(view, RefusalCause::unscaled_loss); refusal.steps.count > 0) {
    Finding finding = context.finding();
    finding.culprit = context.culprit(refusal.site);
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = refusal.steps;
    finding.title = "the scaler is used but no loss was ever scaled";
    finding.message =
        "Backward started from the loss itself, so the scaler has no scale to divide by and raised an exception.";
    finding.proof = "no scaler.scale(loss) before scaler.step(optimizer)";
    finding.evidence = {{"raised", 1.0}};
    finding.fix = fix;
    findings.push_back(std::move(finding));
  }
  // A compiled region may scale where nobody sees it.
  if (!view.trace().hidden_regions.empty() && !view.any_event(EventKind::scale_loss)) return;
  for (const auto& [optimizer, unscaled] : find_unscaled(view)) {
    if (unscaled.steps.count < 2 && view.steps() > 2) continue;
    const double factor = view.scale_at(unscaled.steps.first).value_or(1);
    const std::string name = optimizer_name(view, optimizer);
    Finding finding = context.finding();
    finding.culprit = context.culprit(unscaled.loss_site);
    finding.culprit.op = "backward";
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = unscaled.steps;
    finding.title = unscaled.mixed ? "one of several losses is not scaled, but its gradients are unscaled"
                                   : "the loss is not scaled, but its gradients are unscaled";
    finding.message = fmt::format(
        "A backward pass that reaches {} starts from a loss that is not multiplied by the loss scale; its gradients "
        "are "
        "divided by {} all the same.",
        name, scale(factor));
    finding.proof =
        fmt::format("gradients {} times too small in {}", scale(factor), plural(unscaled.steps.count, "step"));
    finding.evidence = {{"factor", factor}, {"optimizer", name}, {"other_loss_scaled", unscaled.mixed ? 1.0 : 0.0}};
    finding.fix = fix;
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp219;
const Rule rule_amp219 = {
    .code = "AMP219",
    .name = "backward-on-unscaled-loss",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "gradients of a loss that was not scaled are divided by the loss scale",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
