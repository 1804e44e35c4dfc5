#include "analyzers/rootcause/growth.h"

#include <algorithm>
#include <cmath>

#include "analyzers/core/op_kinds.h"

namespace ampscope::analyzers {

namespace {

constexpr std::size_t fewest_samples = 3;
constexpr double notable_bits = 4;  ///< growth of one layer by a factor of 16
constexpr double most_bits = 6;     ///< and of the one that grew most, by 64
/// Part of the growth that lies between two samples in a row: one batch of large data is no divergence.
constexpr double largest_jump = 0.7;
constexpr double compounding = 1.5;   ///< growth of the deepest layer over that of the first, in bits
constexpr double large_value = 1000;  ///< that the activations reach at least
constexpr double absurd_value = 1e9;
constexpr double first_steps = 1;
constexpr std::int64_t soon = 100;          ///< steps from the lowest point to the overflow
constexpr double fast_bits_per_step = 0.1;  ///< twice as large every ten steps: slower growth is a drift

}  // namespace

Trend trend_of(const std::vector<GrowthSample>& samples) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t k = i + 1; k < samples.size(); ++k) {
      if (samples[k].step > samples[i].step)
        slopes.push_back((samples[k].exponent - samples[i].exponent) / (samples[k].step - samples[i].step));
    }
  }
  Trend trend;
  if (slopes.empty()) return trend;
  std::sort(slopes.begin(), slopes.end());
  trend.low = slopes[slopes.size() / 4];
  trend.slope = slopes[slopes.size() / 2];
  trend.high = slopes[slopes.size() * 3 / 4];
  trend.rising = static_cast<double>(std::count_if(slopes.begin(), slopes.end(), [](double s) { return s > 0; })) /
                 static_cast<double>(slopes.size());
  return trend;
}

std::vector<GrowthSample> growth_samples(const TraceView& view, std::int64_t site, std::int64_t until) {
  std::vector<GrowthSample> samples;
  for (const trace::SiteNumerics* numerics : view.numerics(site)) {
    if (numerics->step > until || numerics->stats.absmax <= 0) continue;
    samples.push_back({static_cast<double>(numerics->step), std::log2(numerics->stats.absmax)});
  }
  return samples;
}

namespace {

/// Judged by the samples up to `until`.
std::optional<Divergence> divergence_by(const TraceView& view, std::int64_t until, std::int64_t step) {
  struct Layer {
    Divergence growth;
    double bits = 0;
    double jump_from = 0;  ///< step before the largest rise
    bool steady = false;
  };
  Divergence found;
  std::vector<Layer> layers;
  for (const trace::Site& site : view.trace().sites) {
    if (site.kind != trace::SiteKind::op || site.phase != trace::Phase::forward || !site.grad_enabled) continue;
    if (op_kind(site.name) != OpKind::matmul) continue;
    std::vector<GrowthSample> samples = growth_samples(view, site.id, until);
    if (samples.size() < fewest_samples) continue;
    ++found.layers;
    // A run may be well for long and diverge at its end: what counts is the rise from its lowest point on.
    const auto lowest =
        std::min_element(samples.begin(), samples.end(),
                         [](const GrowthSample& a, const GrowthSample& b) { return a.exponent < b.exponent; });
    samples.erase(samples.begin(), lowest);
    Layer layer;
    layer.bits = samples.back().exponent - samples.front().exponent;
    if (samples.size() < 2 || layer.bits < notable_bits) continue;
    double jump = 0;
    for (std::size_t i = 1; i < samples.size(); ++i) {
      if (samples[i].exponent - samples[i - 1].exponent <= jump) continue;
      jump = samples[i].exponent - samples[i - 1].exponent;
      layer.jump_from = samples[i - 1].step;
    }
    const Trend trend = trend_of(samples);
    layer.steady = trend.slope >= fast_bits_per_step && jump <= largest_jump * layer.bits;
    layer.growth.site = site.id;
    layer.growth.first = std::exp2(samples.front().exponent);
    layer.growth.last = std::exp2(samples.back().exponent);
    layer.growth.first_step = static_cast<std::int64_t>(samples.front().step);
    layer.growth.last_step = static_cast<std::int64_t>(samples.back().step);
    layer.growth.bits_per_step = trend.slope;
    layers.push_back(layer);
  }
  if (layers.empty()) return std::nullopt;
  const auto by_bits = [](const Layer& a, const Layer& b) { return a.bits < b.bits; };
  const Layer& least = *std::min_element(layers.begin(), layers.end(), by_bits);
  const Layer& most = *std::max_element(layers.begin(), layers.end(), by_bits);
  // The first steps at far too high a rate: weights that have grown multiply from layer to layer, larger data do not.
  // Later as well where the values are of a size that no data have.
  const bool early = most.jump_from <= first_steps || most.growth.last >= absurd_value;
  const bool at_once = layers.size() > 1 && early && most.bits >= compounding * least.bits &&
                       most.growth.last >= large_value && step - most.growth.first_step <= soon;
  double highest = 0;
  for (const Layer& layer : layers) {
    if (!layer.steady && !at_once) continue;
    ++found.growing;
    if (layer.bits <= highest) continue;
    highest = layer.bits;
    const std::int64_t growing = found.growing;
    const std::int64_t all = found.layers;
    found = layer.growth;
    found.growing = growing;
    found.layers = all;
  }
  if (highest < most_bits || found.growing * 2 < found.layers) return std::nullopt;
  return found;
}

}  // namespace

std::optional<Divergence> divergence_before(const TraceView& view, std::int64_t step) {
  if (const auto found = divergence_by(view, step, step)) return found;
  // In the step itself only the layers before the overflow have values, so that it compares unlike things: a model that
  // exploded some steps ago has only its first layers there.
  return divergence_by(view, step - 1, step);
}

namespace {

struct Rise {
  double first = 0;
  double last = 0;
  std::int64_t last_step = 0;
};

/// From the median of the first steps to the last ones before `step`.
std::optional<Rise> rise_before(const TraceView& view, const std::string& name, std::int64_t step) {
  std::vector<const trace::SeriesPoint*> points;
  for (const trace::SeriesPoint* point : view.series(name)) {
    if (point->last_step < step && point->nonfinite < point->count) points.push_back(point);
  }
  std::sort(points.begin(), points.end(), [](const auto* a, const auto* b) { return a->last_step < b->last_step; });
  constexpr std::size_t fewest = 3;
  if (points.size() < fewest) return std::nullopt;
  std::vector<double> first;
  constexpr std::size_t most = 10;
  for (std::size_t i = 0; i < std::min(most, (points.size() + 1) / 2); ++i)
    first.push_back(std::abs(points[i]->mean));
  std::sort(first.begin(), first.end());
  const trace::SeriesPoint& last = *points.back();
  return Rise{first[(first.size() - 1) / 2], std::max(std::abs(last.min), std::abs(last.max)), last.last_step};
}

}  // namespace

std::optional<LossGrowth> loss_growth_before(const TraceView& view, std::int64_t step) {
  constexpr double explosive = 100;
  constexpr std::int64_t recent = 2;
  const auto loss = rise_before(view, "loss", step);
  const auto gradients = rise_before(view, "grad_norm", step);
  if (!loss || !gradients || step - loss->last_step > recent) return std::nullopt;
  if (loss->last < explosive * loss->first || gradients->last < explosive * gradients->first) return std::nullopt;
  if (loss->first <= 0 || gradients->first <= 0) return std::nullopt;
  return LossGrowth{loss->first, loss->last, gradients->first, gradients->last, loss->last_step};
}

}  // namespace ampscope::analyzers
