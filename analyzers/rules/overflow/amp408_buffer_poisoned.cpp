#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

/// A kept tensor that a call read or wrote: the running statistics of a normalisation, or what an earlier step made.
const trace::WitnessTensor* kept(const TraceView& view, const trace::NonfiniteEvent& event, const trace::Site& site) {
  for (const trace::WitnessTensor& input : event.inputs) {
    if (input.type.parameter != trace::none || input.type.requires_grad) continue;
    const bool bad = input.stats.nonfinite() != 0;
    if (bad && (input.argument == "running_mean" || input.argument == "running_var")) return &input;
    // NaN, not infinity alone: a running minimum starts from infinity.
    if (input.earlier_step && input.stats.nan != 0) return &input;
    // Overwritten in place: what stands there now is the result. An operator that is not in place itself writes new
    // memory with others inside it, whatever stood at that address before.
    const bool written = input.earlier_step && !input.looked_at && !event.outputs.empty();
    if (written && event.outputs.front().stats.nan != 0 && view.outermost_op(site.id)->name.ends_with('_'))
      return &input;
  }
  return nullptr;
}

bool looks_at(const trace::Site& site) {
  return site.phase == trace::Phase::forward || site.phase == trace::Phase::other;
}

/// What made it so: the call that wrote it, where that was seen, else the first that shows it.
const trace::NonfiniteEvent* written_by(const TraceView& view, const trace::NonfiniteEvent& event,
                                        const trace::WitnessTensor& tensor) {
  const trace::NonfiniteEvent* found = nullptr;
  for (const trace::NonfiniteEvent& other : view.trace().nonfinite_events) {
    if (other.site == tensor.type.producer && other.order < event.order && other.kind != trace::OriginKind::absorber)
      found = &other;
  }
  return found != nullptr ? found : &event;
}

/// The first call in the step of `event` that began something: where the value came from.
const trace::NonfiniteEvent* source_of(const TraceView& view, const trace::NonfiniteEvent& event) {
  for (const trace::NonfiniteEvent* other : view.nonfinite_events(event.step)) {
    if (other->order <= event.order && other->kind == trace::OriginKind::producer) return other;
  }
  return nullptr;
}

void describe_buffer(const RuleContext& context, const trace::NonfiniteEvent& event, const trace::WitnessTensor& tensor,
                     Finding& finding) {
  const TraceView& view = context.view();
  const trace::NonfiniteEvent& write = *written_by(view, event, tensor);
  const std::string module = view.module_of(write.site).value_or("");
  const bool running = tensor.argument.starts_with("running_");
  const std::string name =
      running ? (module.empty() ? tensor.argument : module + "." + tensor.argument) : "a kept tensor";
  finding.culprit = context.culprit(write.site);
  if (running) finding.culprit.parameter = name;
  finding.title =
      fmt::format("{} is non-finite, and stays so from step to step", running ? name : "a moving average or statistic");
  finding.message = fmt::format(
      "{} writes NaN or infinity into {} ({}) in step {}. No skipped step takes it back: whatever reads it "
      "later is non-finite.",
      view.describe(write.site), name, describe_tensor(tensor), count_of(write.step));
  if (const trace::NonfiniteEvent* const source = source_of(view, write);
      source != nullptr && source->site != write.site) {
    finding.message += fmt::format(" The value comes from {}.", view.describe(source->site));
    finding.evidence.emplace_back("comes_from", view.describe(source->site));
  }
  if (event.step != write.step) {
    finding.message += fmt::format(" {} reads it in step {}.", view.describe(event.site), count_of(event.step));
    finding.evidence.emplace_back("read_in_step", static_cast<double>(event.step));
  }
  finding.steps.first = write.step;
  finding.steps.last = std::max(finding.steps.last, event.step);
  finding.steps.count = std::max<std::int64_t>(finding.steps.count, 1);
  finding.proof = fmt::format("{} in step {}: {}", name, count_of(write.step), describe_tensor(tensor));
  finding.evidence.emplace_back("buffer", name);
  finding.evidence.emplace_back("written_in_step", static_cast<double>(write.step));
  finding.fix =
      "update it only with finite values: if torch.isfinite(x).all(): …; and repair what is stored "
      "(module.reset_running_stats())";
  finding.fix_cpp = "update it only when torch::isfinite(x).all().item<bool>(), and repair what is stored";
}

Claim claim(const RuleContext& context, const Origin& origin) {
  if (origin.from_intended_infinity || origin.kind == trace::OriginKind::producer || !looks_at(*origin.site))
    return Claim::none;
  const trace::WitnessTensor* const tensor = kept(context.view(), *origin.event, *origin.site);
  return tensor != nullptr && tensor->earlier_step ? Claim::proven : Claim::none;
}

void explain(const RuleContext& context, const Origin& origin, Finding& finding) {
  describe_buffer(context, *origin.event, *kept(context.view(), *origin.event, *origin.site), finding);
  finding.message += describe_outcome(origin);
}

/// Poisoned without a loss that shows it: training goes on in batch statistics, and validation is NaN.
void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const Origin& origin : context.root_cause().origins) {
    if (claim(context, origin) != Claim::none) return;
  }
  for (const trace::NonfiniteEvent& event : view.trace().nonfinite_events) {
    const trace::Site* const site = view.site(event.site);
    if (site == nullptr || event.kind == trace::OriginKind::absorber || !looks_at(*site)) continue;
    const trace::WitnessTensor* const tensor = kept(view, event, *site);
    if (tensor == nullptr) continue;
    Finding finding = context.finding();
    finding.steps = {event.step, event.step, 1};
    describe_buffer(context, event, *tensor, finding);
    findings.push_back(std::move(finding));
    return;
  }
}

constexpr std::array needs = {Stream::sentinel};
constexpr std::array<std::string_view, 3> symptom_of = {"AMP40", "AMP5", "AMP6"};

}  // namespace

extern const Rule rule_amp408;
const Rule rule_amp408 = {
    .code = "AMP408",
    .name = "buffer-poisoned",
    .family = Family::overflow,
    .severity = Severity::error,
    .summary = "a value that is kept from step to step (running statistics, a moving average) has become non-finite",
    .precision_fault = true,
    .needs = needs,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
    .claim = claim,
    .explain = explain,
};

}  // namespace ampscope::analyzers
