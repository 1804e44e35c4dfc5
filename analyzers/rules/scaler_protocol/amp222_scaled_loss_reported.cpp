#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;
using trace::EventKind;

/// Whether the op hands the value on: as a number, into a sum, onto a list.
bool reports(const TraceView& view, const trace::ProtocolEvent& event) {
  if ((event.flags & event_flag::by_inverse_scale) != 0) return false;
  if ((event.flags & event_flag::to_number) != 0) return true;
  const trace::Site* const site = view.site(event.site);
  if (site == nullptr) return false;
  constexpr std::array<std::string_view, 6> names = {"add", "sum", "mean", "stack", "cat", "lerp"};
  return std::find(names.begin(), names.end(), base_name(site->name)) != names.end();
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  std::map<std::int64_t, StepSpan> found;  // by site
  std::int64_t candidate = trace::none;
  StepSpan candidate_steps;
  bool scale_read = false;  // since the loss was scaled
  const auto commit = [&] {
    if (candidate != trace::none && !scale_read) extend(found[candidate], candidate_steps);
    candidate = trace::none;
  };
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState&) {
    // A scale that is read beside the loss may divide it where no operator shows it.
    if (event.kind == EventKind::scale_read) {
      if (candidate != trace::none) candidate = trace::none;
      scale_read = true;
      return;
    }
    commit();
    if (event.kind == EventKind::scale_loss) scale_read = false;
    if (event.kind == EventKind::loss_read && reports(view, event)) {
      candidate = event.site;
      candidate_steps = span;
    }
  });
  commit();
  for (const auto& [site, steps] : found) {
    const double factor = view.scale_at(steps.first).value_or(1);
    if (factor == 1) continue;
    Finding finding = context.finding();
    finding.culprit = context.culprit(site);
    finding.culprit.phase = trace::Phase::scaler;
    finding.steps = steps;
    finding.title = "the loss that is logged is still multiplied by the loss scale";
    finding.message = fmt::format(
        "What is read here is the result of scaler.scale(loss), {} times the loss. Training is right, the log is not.",
        scale(factor));
    finding.proof = fmt::format("{} times the loss in {}", scale(factor), plural(steps.count, "step"));
    finding.evidence = {{"factor", factor}};
    finding.fix = "keep the loss and its scaled form apart: scaler.scale(loss).backward(); log loss.item()";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array<std::string_view, 1> symptom_of = {"AMP213"};

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp222;
const Rule rule_amp222 = {
    .code = "AMP222",
    .name = "scaled-loss-reported",
    .family = Family::scaler_protocol,
    .severity = Severity::info,
    .summary = "the loss that is read for logging is still multiplied by the loss scale",
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
