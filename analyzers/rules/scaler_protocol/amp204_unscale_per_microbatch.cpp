#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/protocol.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/scaler/refusals.h"

namespace ampscope::analyzers {

namespace {

namespace event_flag = trace::event_flag;

struct Mix {
  StepSpan steps;
  std::int64_t site = trace::none;
  int passes = 0;
  bool by_hand = false;  ///< the program divided them, not the scaler
};

/// Optimizers that were stepped with a sum of unscaled and scaled gradients.
std::map<std::int64_t, Mix> find_mixes(const TraceView& view) {
  std::map<std::int64_t, Mix> found;
  const bool knows_scale = may_know_scale(view);
  walk_protocol(view, [&](const StepSpan& span, const trace::ProtocolEvent& event, const ProtocolState& before) {
    // A skipped step applies nothing, whatever was added meanwhile: a generator's loss after the discriminator's skip.
    if (event.kind != trace::EventKind::optimizer_step || (event.flags & event_flag::fused) != 0) return;
    const GradientState& gradients = before.of(event.object);
    // A closure that the step itself runs is another mistake.
    if (!gradients.mixed || !gradients.any_scaled || gradients.inside_step) return;
    const bool by_hand = gradients.mixed_site != trace::none;
    if (by_hand && !knows_scale) return;
    Mix& mix = found[event.object];
    if (mix.site == trace::none) {
      mix.by_hand = by_hand;
      mix.site = mix.by_hand ? gradients.mixed_site : gradients.unscale_site;
    }
    mix.passes = gradients.passes;
    extend(mix.steps, span);
  });
  return found;
}

void describe(const RuleContext& context, std::int64_t site, Finding& finding) {
  finding.culprit = context.culprit(site);
  finding.culprit.op = "GradScaler.unscale_";
  finding.culprit.phase = trace::Phase::scaler;
  finding.fix =
      "if (i + 1) % accumulate == 0: scaler.unscale_(optimizer); clip; scaler.step(optimizer); scaler.update()";
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  if (const Refusal refusal = first_refusal(view, RefusalCause::unscale_in_window); refusal.steps.count > 0) {
    Finding finding = context.finding();
    describe(context, refusal.site, finding);
    finding.steps = refusal.steps;
    finding.title = "unscale_ is called on every micro-batch of an accumulation";
    finding.message = fmt::format(
        "unscale_ ran after an earlier micro-batch of the same window and was called again after backward pass {} of "
        "it, with no step and no update between: the scaler raised an exception.",
        refusal.passes);
    finding.proof = fmt::format("second unscale_ at micro-batch {} of the window", refusal.passes);
    finding.evidence = {{"micro_batch", static_cast<double>(refusal.passes)}, {"raised", 1.0}};
    if (const std::string words = last_words(view); !words.empty()) finding.evidence.emplace_back("exception", words);
    findings.push_back(std::move(finding));
  }
  for (const auto& [optimizer, mix] : find_mixes(view)) {
    const double factor = view.scale_at(mix.steps.first).value_or(1);
    if (factor == 1) continue;
    Finding finding = context.finding();
    describe(context, mix.site, finding);
    if (const trace::Site* const site = view.site(mix.site); mix.by_hand && site != nullptr)
      finding.culprit.op = site->name;
    finding.steps = mix.steps;
    finding.title = "gradients are unscaled before the last micro-batch of a window is added";
    finding.message = fmt::format(
        "{} steps on the sum of {} backward passes: those before {} were divided by the loss scale, those after it are "
        "still multiplied by {}, so the last ones outweigh all others.",
        optimizer_name(view, optimizer), mix.passes,
        mix.by_hand ? "the division by the scale at " + view.place(view.source_of(mix.site)) : "unscale_",
        scale(factor));
    finding.proof = fmt::format("factors 1 and {} in one sum of {} passes", scale(factor), mix.passes);
    finding.evidence = {{"factor", factor}, {"passes", static_cast<double>(mix.passes)}};
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};

}  // namespace

extern const Rule rule_amp204;
const Rule rule_amp204 = {
    .code = "AMP204",
    .name = "unscale-per-microbatch",
    .family = Family::scaler_protocol,
    .severity = Severity::error,
    .summary = "unscale_ inside an accumulation window: the scaler refuses, or scaled and unscaled gradients mix",
    .needs = needs,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
