#include <algorithm>
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

struct Division {
  StepSpan steps;
  std::int64_t first_site = trace::none;   ///< that divided first
  std::int64_t second_site = trace::none;  ///< that divided again
};

/// What is known beside the protocol's state: who divided the gradients of an optimizer by hand.
struct ByHand {
  std::int64_t site = trace::none;
  bool out_of_place = false;  ///< the result is a new tensor, which may or may not become the gradient
};

bool same_line(const TraceView& view, std::int64_t one, std::int64_t other) {
  const trace::SourceLine a = view.source_of(one);
  const trace::SourceLine b = view.source_of(other);
  return a.file == b.file && a.line == b.line;
}

bool by_inverse(const trace::ProtocolEvent& event) noexcept {
  return (event.flags & event_flag::by_inverse_scale) != 0;
}

/// Calls that divide by a number of their own, an average over processes or micro-batches, which the scale happens to
/// equal in a few steps.
std::set<std::int64_t> averages(const TraceView& view) {
  std::map<std::int64_t, std::int64_t> balance;  // by site: events that divide by the scale, less those that do not
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    if (event.kind != EventKind::gradient_write && event.kind != EventKind::gradient_read) return;
    balance[event.site] += by_inverse(event) ? span.count : -span.count;
  });
  std::set<std::int64_t> sites;
  for (const auto& [site, more] : balance) {
    if (more < 0) sites.insert(site);
  }
  return sites;
}

std::map<std::int64_t, Division> find_divisions(const TraceView& view) {
  std::map<std::int64_t, Division> found;
  std::map<std::int64_t, ByHand> by_hand;
  EventKind previous = EventKind::backward;
  const trace::Site* const hook = unscaling_hook(view);
  const bool knows_scale = may_know_scale(view);
  const std::set<std::int64_t> averaging = averages(view);
  const auto note = [&](std::int64_t optimizer, std::int64_t first, std::int64_t second, const StepSpan& span) {
    Division& division = found[optimizer];
    if (division.steps.count == 0) {
      division.first_site = first;
      division.second_site = second;
    }
    extend(division.steps, span);
  };
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    if (event.kind == EventKind::backward && (event.flags & event_flag::gradients_only) == 0) by_hand.clear();
    const bool divides = knows_scale && by_inverse(event) && !averaging.contains(event.site);
    if (divides && (event.kind == EventKind::gradient_write || event.kind == EventKind::gradient_read)) {
      for (const std::int64_t optimizer : concerned(event, before)) {
        const GradientState& gradients = before.of(optimizer);
        const bool writes = event.kind == EventKind::gradient_write;
        if (writes && gradients.unscaled && gradients.any_scaled && !gradients.used) {
          note(optimizer, gradients.unscale_site, event.site, span);
        } else if (!gradients.unscaled && gradients.any_scaled) {
          by_hand[optimizer] = {event.site, !writes};
        }
      }
    }
    if (event.kind == EventKind::gradient_write && multiplies_by_scale(view, event.site)) {
      for (const std::int64_t optimizer : concerned(event, before))
        by_hand.erase(optimizer);
    }
    if (event.kind == EventKind::unscale) {
      const GradientState& gradients = before.of(event.object);
      const auto hand = by_hand.find(event.object);
      // One call of the scaler makes one event for each dtype of gradients.
      const bool same_call = previous == EventKind::unscale && same_line(view, gradients.unscale_site, event.site);
      if (gradients.present && gradients.any_scaled && gradients.unscaled && !gradients.used && !same_call) {
        note(event.object, gradients.unscale_site, event.site, span);
      } else if (hand != by_hand.end() && gradients.present && gradients.any_scaled &&
                 (!hand->second.out_of_place || (event.flags & event_flag::replaced) != 0)) {
        note(event.object, hand->second.site, event.site, span);
      } else if (hook != nullptr && gradients.present && gradients.any_scaled && !gradients.unscaled) {
        note(event.object, hook->id, event.site, span);
      }
    }
    previous = event.kind;
  });
  return found;
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const char* const fix = "divide once: scaler.unscale_(optimizer), and leave the rest to scaler.step(optimizer)";
  if (const Refusal refusal = first_refusal(view, RefusalCause::unscale_again); refusal.steps.count > 0) {
    Finding finding = context.finding();
    finding.culprit = context.culprit(refusal.site);
    finding.culprit.op = "GradScaler.unscale_";
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = refusal.steps;
    finding.title = "unscale_ is called twice on the same gradients";
    finding.message =
        fmt::format("The gradients of {} had been unscaled at {} already; the scaler raised an exception.",
                    optimizer_name(view, refusal.optimizer), view.place(view.source_of(refusal.earlier_site)));
    finding.proof = "no backward pass between the two calls";
    finding.evidence = {{"raised", 1.0}};
    finding.fix = fix;
    findings.push_back(std::move(finding));
  }
  for (const auto& [optimizer, division] : find_divisions(view)) {
    const double factor = view.scale_at(division.steps.first).value_or(1);
    if (factor == 1) continue;
    const double share_of_steps = static_cast<double>(division.steps.count) / static_cast<double>(view.steps());
    Finding finding = context.finding();
    finding.culprit = context.culprit(division.second_site);
    finding.culprit.phase = trace::Phase::scaler;
    if (const trace::Site* site = view.site(division.second_site); site != nullptr && !site->api.empty())
      finding.culprit.op = site->api;
    finding.steps = division.steps;
    finding.title = "gradients are divided by the loss scale twice";
    finding.message = fmt::format(
        "The gradients of {} were divided by {} at {} and again at {}: the optimizer sees gradients {} times too "
        "small.",
        optimizer_name(view, optimizer), scale(factor), view.place(view.source_of(division.first_site)),
        view.place(view.source_of(division.second_site)), scale(factor));
    finding.proof = fmt::format("1/{} twice · in {} of the steps", scale(factor), share(share_of_steps));
    finding.evidence = {{"factor", factor},
                        {"first_division", view.place(view.source_of(division.first_site))},
                        {"second_division", view.place(view.source_of(division.second_site))}};
    finding.fix = fix;
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp205;
const Rule rule_amp205 = {
    .code = "AMP205",
    .name = "double-unscale",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "gradients are divided by the loss scale twice",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
