#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "analyzers/core/numbers.h"
#include "analyzers/core/rule_context.h"
#include "analyzers/rootcause/growth.h"
#include "analyzers/rootcause/scene.h"

namespace ampscope::analyzers {

namespace {

constexpr double fewest_steps = 20;  ///< the first ones of a training run always grow

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// When a straight line through the samples reaches `limit`: about, and between.
struct Crossing {
  double end = 0;
  double earliest = 0;
  double latest = 0;
  double scatter = 0;  ///< median distance of the samples from the line, as a share of what the line rises
};

/// The line has the slope of the trend and goes through the middle of the samples. They scatter around it, so the
/// largest of a step may reach the limit sooner or later than the line does.
std::optional<Crossing> crossing(const std::vector<GrowthSample>& samples, double limit) {
  const Trend trend = trend_of(samples);
  if (trend.low <= 0) return std::nullopt;
  std::vector<double> steps;
  std::vector<double> values;
  for (const GrowthSample& sample : samples) {
    steps.push_back(sample.step);
    values.push_back(sample.exponent);
  }
  const double step = median(steps);
  const double value = median(values);
  double above = 0;
  double below = 0;
  std::vector<double> distances;
  for (const GrowthSample& sample : samples) {
    const double distance = sample.exponent - (value + trend.slope * (sample.step - step));
    above = std::max(above, distance);
    below = std::max(below, -distance);
    distances.push_back(std::abs(distance));
  }
  const double rise = trend.slope * (samples.back().step - samples.front().step);
  return Crossing{step + (limit - value) / trend.slope, step + (limit - value - above) / trend.high,
                  step + (limit - value + below) / trend.low, median(distances) / rise};
}

/// Values grow by a factor a step, or by an amount: the way that the samples are nearer to. With a constant amount the
/// exponent rises more and more slowly, and its own slope would tell an end that never comes.
std::optional<Crossing> crossing_of(const std::vector<GrowthSample>& samples) {
  const double limit = trace::float_limits(trace::DType::float16).max;
  const std::optional<Crossing> by_factor = crossing(samples, std::log2(limit));
  std::vector<GrowthSample> amounts = samples;
  for (GrowthSample& sample : amounts)
    sample.exponent = std::exp2(sample.exponent);
  const std::optional<Crossing> by_amount = crossing(amounts, limit);
  if (!by_factor || !by_amount) return by_factor ? by_factor : by_amount;
  return by_amount->scatter < by_factor->scatter ? by_amount : by_factor;
}

/// The growth may have slowed down: then the later half tells a later end, or none.
std::optional<Crossing> lasting_crossing(const std::vector<GrowthSample>& samples) {
  const std::optional<Crossing> whole = crossing_of(samples);
  const std::optional<Crossing> later = crossing_of({samples.end() - (samples.size() + 1) / 2, samples.end()});
  if (!whole || !later) return std::nullopt;
  Crossing lasting = later->end > whole->end ? *later : *whole;
  lasting.earliest = std::min(later->earliest, whole->earliest);
  return lasting;
}

/// Whether the values have stopped growing since the last sample: every call is looked at for its largest value.
bool has_stopped(const TraceView& view, std::int64_t site, const GrowthSample& last, double slope) {
  constexpr double notable = 0.5;  ///< bits that the trend would have added
  constexpr double share = 0.25;   ///< of which so many came
  const trace::SiteTotals& totals = view.totals(site);
  const double expected = slope * (static_cast<double>(totals.last_step) - last.step);
  return totals.absmax > 0 && expected >= notable && std::log2(totals.absmax) - last.exponent < share * expected;
}

struct Candidate {
  std::int64_t site = trace::none;
  double largest = 0;
  double first = 0;
  Trend trend;
  double end = 0;  ///< step at which the type ends
  double earliest = 0;
  double latest = 0;
};

void evaluate(const RuleContext& context, std::vector<Finding>& findings) {
  const TraceView& view = context.view();
  const double limit = std::log2(trace::float_limits(trace::DType::float16).max);
  const auto steps = static_cast<double>(view.steps());
  if (steps < fewest_steps) return;
  std::optional<Candidate> nearest;
  std::int64_t sites = 0;
  for (const trace::Site& site : view.trace().sites) {
    if (site.kind != trace::SiteKind::op || site.phase != trace::Phase::forward || !site.grad_enabled) continue;
    std::vector<GrowthSample> samples;
    double largest = 0;
    for (const trace::SiteNumerics* numerics : view.numerics(site.id)) {
      if (numerics->dtype != trace::DType::float16 || numerics->stats.absmax <= 0) continue;
      // The first steps are those of a model that has not learned anything yet.
      if (numerics->step < 2 && steps > 20) continue;
      samples.push_back({static_cast<double>(numerics->step), std::log2(numerics->stats.absmax)});
      largest = std::max(largest, numerics->stats.absmax);
    }
    if (static_cast<double>(samples.size()) < context.parameter("min_samples")) continue;
    if (limit - samples.back().exponent > context.parameter("max_headroom")) continue;
    if (samples.back().exponent - samples.front().exponent < context.parameter("min_growth")) continue;
    const Trend trend = trend_of(samples);
    if (trend.slope <= 0 || trend.low <= 0 || trend.rising < 0.9) continue;
    if (has_stopped(view, site.id, samples.back(), trend.slope)) continue;
    const std::optional<Crossing> crossed = lasting_crossing(samples);
    if (!crossed) continue;
    Candidate candidate{site.id, largest, std::exp2(samples.front().exponent), trend, 0, 0, 0};
    // It has not been reached yet: not in the steps that were sampled, nor in those whose results were only checked.
    const double next = view.totals(site.id).nonfinite_calls == 0 ? steps : samples.back().step + 1;
    candidate.end = std::max(crossed->end, next);
    candidate.earliest = std::max(crossed->earliest, next);
    candidate.latest = std::max(crossed->latest, candidate.end);
    if (candidate.end > steps * (1 + context.parameter("horizon"))) continue;
    ++sites;
    if (!nearest || candidate.end < nearest->end) nearest = candidate;
  }
  if (!nearest) return;
  const Candidate& found = *nearest;
  Finding finding = context.finding();
  finding.culprit = context.culprit(found.site);
  finding.steps = {0, std::max<std::int64_t>(view.steps() - 1, 0), view.steps()};
  const auto whole = [](double step) { return count_of(static_cast<std::int64_t>(std::llround(step))); };
  finding.title = fmt::format("the values of {} grow towards the end of fp16, which they reach about step {}",
                              base_name(view.site(found.site)->name), whole(found.end));
  finding.message = fmt::format(
      "The largest value of {} rose from {} to {}, {} bits below the end of fp16, by {} bits in 100 steps. At this "
      "rate it "
      "overflows about step {} (between {} and {}).{}",
      view.describe(found.site), number(found.first), number(found.largest), number(limit - std::log2(found.largest)),
      number(found.trend.slope * 100), whole(found.end), whole(found.earliest), whole(found.latest),
      sites > 1 ? fmt::format(" {} operators grow like this.", count_of(sites)) : "");
  finding.proof = fmt::format("{} → {} · ends about step {} ({}–{})", number(found.first), number(found.largest),
                              whole(found.end), whole(found.earliest), whole(found.latest));
  finding.evidence = {{"largest", found.largest},
                      {"headroom_bits", limit - std::log2(found.largest)},
                      {"bits_per_step", found.trend.slope},
                      {"end_step", found.end},
                      {"end_step_earliest", found.earliest},
                      {"end_step_latest", found.latest},
                      {"operators", static_cast<double>(sites)}};
  finding.fix =
      "keep the values small: weight decay, a normalisation in front of this operator, a smaller learning rate; or "
      "bfloat16";
  findings.push_back(std::move(finding));
}

constexpr std::array parameters = {
    ParameterSpec{"min_samples", 6, 3, 1000, true, "steps with full statistics that a trend needs"},
    ParameterSpec{"max_headroom", 6, 1, 15, false, "bits below the end of fp16 from which growth matters"},
    ParameterSpec{"min_growth", 2, 0.5, 15, false, "bits by which the values must have grown"},
    ParameterSpec{"horizon", 1, 0.1, 100, false, "how far ahead the end may lie, in lengths of the run so far"},
};

constexpr std::array needs = {Stream::numerics};
constexpr std::array<std::string_view, 5> symptom_of = {"AMP401", "AMP402", "AMP403", "AMP404", "AMP609"};

}  // namespace

extern const Rule rule_amp410;
const Rule rule_amp410 = {
    .code = "AMP410",
    .name = "headroom-falling",
    .family = Family::overflow,
    .severity = Severity::warning,
    .summary = "the largest values of an fp16 operator grow steadily towards the end of the type",
    .precision_fault = true,
    .needs = needs,
    .parameters = parameters,
    .symptom_of = symptom_of,
    .evaluate = evaluate,
};

}  // namespace ampscope::analyzers
