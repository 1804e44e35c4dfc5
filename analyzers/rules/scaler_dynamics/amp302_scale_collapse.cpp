#include <array>
#include <map>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"

namespace ampscope::analyzers {

namespace {

/// The backward operator in which gradients overflow first, in most of the skipped steps.
std::int64_t usual_overflow(const TraceView& view, const SkipAnalysis& skips) {
  std::map<std::int64_t, std::int64_t> first_in;
  for (const Skip& skip : skips.skips) {
    if (skip.by_design()) continue;
    for (const trace::NonfiniteEvent* event : view.nonfinite_events(skip.step)) {
      const trace::Site* const site = view.site(event->site);
      if (site == nullptr || site->phase != trace::Phase::backward || site->in_recompute) continue;
      ++first_in[site->id];
      break;
    }
  }
  std::int64_t usual = trace::none;
  std::int64_t most = 0;
  for (const auto& [site, count] : first_in) {
    if (count > most) {
      usual = site;
      most = count;
    }
  }
  return usual;
}

/// The scale keeps its size on the whole, but most steps are spent on trying larger ones and coming back.
void report_saw_tooth(const RuleContext& context, const SkipAnalysis& skips, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const trace::ScalerUpdate& last = *view.updates(skips.scaler).back();
  Finding finding = context.finding();
  finding.severity = Severity::warning;
  const auto all = static_cast<std::int64_t>(skips.skips.size());
  finding.steps = {skips.skips.front().step, skips.skips.back().step, all};
  finding.culprit.op = "GradScaler.update";
  finding.culprit.phase = trace::Phase::scaler;
  if (const trace::Scaler* const scaler = view.scaler(skips.scaler); scaler != nullptr && scaler->source.known())
    finding.culprit.source = scaler->created.known() ? scaler->created : scaler->source;
  finding.title = "most steps are skipped, because the scale grows faster than it backs off";
  finding.message = fmt::format(
      "{} of {} updates were skipped and {} at the end still are: the scale grows by {} after {}, and a skip takes it "
      "back by {} only, so that several are needed each time.",
      count_of(all), count_of(skips.updates), share(1 / skips.skip_period), number(last.growth_factor),
      plural(last.growth_interval, "step"), number(last.backoff_factor));
  finding.proof =
      fmt::format("{} of {} skipped · growth {} after {} · backoff {}", count_of(all), count_of(skips.updates),
                  number(last.growth_factor), plural(last.growth_interval, "step"), number(last.backoff_factor));
  finding.evidence = {{"skipped_steps", static_cast<double>(all)},
                      {"skip_period", skips.skip_period},
                      {"growth_factor", last.growth_factor},
                      {"backoff_factor", last.backoff_factor},
                      {"growth_interval", static_cast<double>(last.growth_interval)}};
  finding.fix = "leave growth_factor=2.0, backoff_factor=0.5 and growth_interval=2000 as they are by default";
  findings.push_back(std::move(finding));
}

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  for (const SkipAnalysis& skips : context.skips()) {
    if (skips.saw_tooth) report_saw_tooth(context, skips, findings);
    if (!skips.collapsed) continue;
    Finding finding = context.finding();
    finding.severity = skips.hopeless ? Severity::error : Severity::warning;
    std::int64_t count = 0;
    std::int64_t forced = 0;
    for (const Skip& skip : skips.skips) {
      if (skip.by_design()) continue;
      if (count == 0) finding.steps.first = skip.step;
      finding.steps.last = skip.step;
      ++count;
      forced += skip.kind == SkipKind::forced ? 1 : 0;
    }
    finding.steps.count = count;
    const std::int64_t overflow = usual_overflow(view, skips);
    finding.culprit = context.culprit(overflow);
    if (overflow == trace::none) {
      finding.culprit.op = "GradScaler.update";
      finding.culprit.phase = trace::Phase::scaler;
      const trace::Scaler* const scaler = view.scaler(skips.scaler);
      if (scaler != nullptr && scaler->source.known()) finding.culprit.source = scaler->source;
    }
    finding.title = skips.hopeless ? "the loss scale collapses: no scale is small enough for long"
                                   : "the loss scale falls faster than it can grow back";
    finding.message = fmt::format(
        "{} were skipped, one every {} updates, while the scale needs {} updates without a skip to double once: it "
        "went from {} to {}.",
        plural(count, "step"), number(skips.skip_period), count_of(skips.growth_interval), scale(skips.settled_scale),
        scale(skips.last_scale));
    if (forced == count) {
      finding.message += " The loss itself was non-finite in these steps, which no loss scale can change.";
    } else if (overflow != trace::none) {
      finding.message += fmt::format(" Gradients overflow first in {}.", view.describe(overflow));
    }
    finding.proof =
        fmt::format("one skip every {} updates · grows once in {} · scale {} → {}", number(skips.skip_period),
                    count_of(skips.growth_interval), scale(skips.first_scale), scale(skips.last_scale));
    finding.evidence = {{"skipped_steps", static_cast<double>(count)},
                        {"skip_period", skips.skip_period},
                        {"growth_interval", static_cast<double>(skips.growth_interval)},
                        {"settled_scale", skips.settled_scale},
                        {"last_scale", skips.last_scale},
                        {"skips_with_nonfinite_loss", static_cast<double>(forced)}};
    if (overflow != trace::none) finding.evidence.emplace_back("overflows_first_in", view.describe(overflow));
    finding.fix =
        forced == count
            ? "find what makes the loss non-finite; the loss scale is not the cause"
            : "find out why gradients keep growing: a term of the loss without bound, a learning rate too high; "
              "clip after scaler.unscale_(optimizer), or train in bfloat16";
    findings.push_back(std::move(finding));
  }
}

constexpr std::array needs = {Stream::protocol};
constexpr std::array parameters = {
    ParameterSpec{"settled_after", 20, 1, 100000, true,
                  "updates without a skip after which the scale counts as settled"},
    ParameterSpec{"min_skips", 5, 2, 100000, true,
                  "skips that are neither settling nor upward probes which make a collapse"},
    ParameterSpec{"min_fall", 3, 1, 100, false, "powers of two that the scale must have fallen"},
};
constexpr std::array<std::string_view, 11> symptom_of = {"AMP4",   "AMP502", "AMP503", "AMP504", "AMP505", "AMP6",
                                                         "AMP208", "AMP211", "AMP214", "AMP801", "AMP802"};

}  // namespace

extern const Rule rule_amp302;
const Rule rule_amp302 = {
    .code = "AMP302",
    .name = "scale-collapse",
    .family = Family::scaler_dynamics,
    .severity = Severity::warning,
    .summary = "the loss scale falls faster than it can grow",
    .needs = needs,
    .parameters = parameters,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
