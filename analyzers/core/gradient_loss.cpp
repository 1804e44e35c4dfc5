#include "analyzers/core/gradient_loss.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "analyzers/core/flush.h"
#include "analyzers/core/op_kinds.h"
#include "analyzers/core/scalars.h"

namespace ampscope::analyzers {

namespace {

using trace::DType;
using trace::GradientWindow;

constexpr int largest_raise = 40;
constexpr double negligible = 0.001;  ///< share that may stay lost at the scale that is proposed

/// Whether an operand of this call is zero everywhere in that step, so that its product is zero in exact arithmetic
/// too: LoRA's second matrix before the first update.
bool multiplies_by_zeros(const TraceView& view, std::int64_t site, std::int64_t step) {
  std::set<std::int64_t> visited;
  std::vector<std::int64_t> open = view.producers(site);
  while (!open.empty()) {
    const std::int64_t producer = open.back();
    open.pop_back();
    if (view.site(producer) == nullptr || !visited.insert(producer).second) continue;
    bool seen = false;
    for (const trace::SiteNumerics* operand : view.numerics(producer)) {
      if (operand->step != step || operand->stats.count == 0) continue;
      seen = true;
      if (operand->stats.zero == operand->stats.count) return true;
    }
    if (seen || op_kind(view.site(producer)->name) != OpKind::move) continue;
    for (const std::int64_t further : view.producers(producer))
      open.push_back(further);
  }
  return false;
}

/// Whether what `site` got from `producer` can have been zero everywhere. Both products of a linear layer's backward
/// are one site, so zeros of one of them stand beside values of the other.
bool may_get_only_zeros(const trace::Site& site, std::int64_t producer, const trace::SiteNumerics& produced) {
  for (const trace::TensorType& input : site.inputs) {
    if (input.producer != producer) continue;
    std::int64_t elements = 1;
    for (const std::int64_t size : input.shape)
      elements *= size;
    if (static_cast<std::int64_t>(produced.stats.zero) >= elements) return true;
  }
  return false;
}

/// Loss that a sampled step shows without an estimate: values of fp32 that a cast to fp16 made zero, those that are
/// zero once a number has multiplied them, and products that came out zero everywhere from gradients that are not.
void look_at_backward(const TraceView& view, GradientLoss& loss) {
  constexpr int flushed_below = -25;  // half of the smallest subnormal: what rounds to zero
  for (const trace::Site& site : view.trace().sites) {
    if (site.phase != trace::Phase::backward || site.in_recompute) continue;
    const OpKind kind = op_kind(site.name);
    const double factor = std::abs(factor_of(site));
    if (kind != OpKind::cast && kind != OpKind::matmul && factor == 0) continue;
    for (const trace::SiteNumerics* after : view.numerics(site.id)) {
      if (after->dtype != DType::float16 || after->stats.count == 0) continue;
      for (const std::int64_t producer : view.producers(site.id)) {
        for (const trace::SiteNumerics* before : view.numerics(producer)) {
          if (before->step != after->step) continue;
          double share = 0;
          if (kind == OpKind::cast && before->dtype == DType::float32 && before->stats.count == after->stats.count) {
            share = static_cast<double>(before->stats.exponents.below(flushed_below)) /
                    static_cast<double>(before->stats.count);
          } else if (factor > 0 && before->dtype == DType::float16 && before->stats.count == after->stats.count) {
            const int below = flushed_below - static_cast<int>(std::floor(std::log2(factor)));
            share =
                static_cast<double>(before->stats.exponents.below(below)) / static_cast<double>(before->stats.count);
          } else if (kind == OpKind::matmul && before->dtype == DType::float16 &&
                     view.site(producer)->phase == trace::Phase::backward && after->stats.zero == after->stats.count &&
                     !before->stats.exponents.empty() && !may_get_only_zeros(site, producer, *before) &&
                     !multiplies_by_zeros(view, site.id, after->step)) {
            share = 1;
          }
          if (share > loss.cast_share) {
            loss.cast_share = share;
            loss.cast_site = site.id;
          }
        }
      }
    }
  }
}

struct Fit {
  FlushEstimate estimate;
  double weight = 1;
};

/// Whether the smallest values that got through are a good part of all: the type's lower edge cuts the distribution
/// where it is dense.
bool cut_where_dense(const trace::ExponentHistogram& histogram, int smallest) {
  constexpr double dense = 0.4;
  const auto total = static_cast<double>(histogram.total());
  return static_cast<double>(histogram.below(smallest)) <= 0.01 * total &&
         static_cast<double>(histogram.below(smallest + 3)) >= dense * total;
}

/// Where gradients get smaller in the course of a run, what is flushed can be counted: zeros that every step has (dead
/// units, rows that are not in the batch) are there in the best step as well, and the rest came with the smaller
/// gradients. The estimate from what got through alone reads low then, because most of it was flushed further up, in
/// the gradients of activations.
void count_growing_zeros(std::vector<WindowLoss>& looks) {
  std::map<std::int64_t, const WindowLoss*> best;
  for (const WindowLoss& look : looks) {
    const WindowLoss*& known = best[look.window->parameter];
    if (known == nullptr || look.zeros < known->zeros) known = &look;
  }
  std::map<std::int64_t, std::pair<double, double>> baseline;
  for (const auto& [parameter, look] : best)
    baseline[parameter] = {look->zeros, look->lost};
  for (WindowLoss& look : looks) {
    if (look.lost == 0 || !cut_where_dense(look.window->stats.exponents, smallest_kept(*look.window))) continue;
    const auto& [zeros, lost] = baseline[look.window->parameter];
    look.lost = std::clamp(look.zeros - zeros + lost, look.lost, std::max(look.lost, look.zeros));
  }
}

/// Windows that lie over the same steps.
struct Slice {
  std::int64_t last_step = 0;
  double elements = 0;
  double lost = 0;
  double zeros_everywhere = 0;  ///< elements of parameters without one non-zero gradient
  bool any_nonzero = false;
  double scale = 1;
};

bool usable(const GradientWindow& window) {
  return window.backward_dtype == DType::float16 && window.stats.count != 0;
}

/// First steps of the windows to look at: all, or every few of a large run, whose windows resemble each other.
std::set<std::int64_t> slices_to_look_at(const TraceView& view) {
  constexpr std::size_t most_windows = 20'000;
  std::set<std::int64_t> all;
  for (const GradientWindow& window : view.trace().gradients)
    all.insert(window.first_step);
  const std::size_t every = view.trace().gradients.size() / most_windows + 1;
  std::set<std::int64_t> chosen;
  std::size_t index = 0;
  for (const std::int64_t first : all) {
    if (index++ % every == 0) chosen.insert(first);
  }
  return chosen;
}

}  // namespace

int smallest_kept(const GradientWindow& window) {
  // The largest scale of the window: what was flushed at a smaller one then counts too low rather than too high.
  const double scale = window.scale_max > 0 ? window.scale_max : 1;
  return trace::float_limits(DType::float16).smallest_subnormal - static_cast<int>(std::lround(std::log2(scale)));
}

std::vector<WindowLoss> window_losses(std::span<const GradientWindow* const> windows) {
  std::vector<WindowLoss> losses;
  losses.reserve(windows.size());
  for (const GradientWindow* window : windows) {
    WindowLoss loss{window, FlushEstimate(window->stats, smallest_kept(*window))};
    const auto count = static_cast<double>(window->stats.count);
    loss.zeros = static_cast<double>(window->stats.zero) / count;
    loss.lost = loss.estimate.lost() / count;
    losses.push_back(loss);
  }
  count_growing_zeros(losses);
  return losses;
}

GradientLoss measure_gradient_loss(const TraceView& view, double notable) {
  GradientLoss loss;
  look_at_backward(view, loss);

  std::map<std::int64_t, Slice> slices;
  std::map<std::int64_t, std::pair<double, double>> by_parameter;  // lost, elements
  std::vector<Fit> fits;
  double largest = 0;
  const std::set<std::int64_t> looked_at = slices_to_look_at(view);
  std::vector<const GradientWindow*> windows;
  for (const GradientWindow& window : view.trace().gradients) {
    if (usable(window) && looked_at.contains(window.first_step) && !window.stats.exponents.empty())
      windows.push_back(&window);
  }
  const std::vector<WindowLoss> looks = window_losses(windows);
  auto next_look = looks.cbegin();
  for (const GradientWindow& window : view.trace().gradients) {
    if (!usable(window) || !looked_at.contains(window.first_step)) continue;
    const double weight = window.weight;
    const double elements = weight * static_cast<double>(window.stats.count);
    Slice& slice = slices[window.first_step];
    slice.last_step = std::max(slice.last_step, window.last_step);
    slice.elements += elements;
    slice.scale = window.scale_max;
    loss.elements += elements;
    by_parameter[window.parameter].second += elements;
    if (window.stats.exponents.empty()) {
      if (window.stats.nonfinite() == 0) slice.zeros_everywhere += elements;
      continue;
    }
    slice.any_nonzero = true;
    largest = std::max(largest, window.stats.absmax);
    const WindowLoss& look = *next_look++;
    if (look.lost == 0) continue;
    const double lost_here = elements * look.lost;
    slice.lost += lost_here;
    by_parameter[window.parameter].first += lost_here;
    fits.push_back({look.estimate, lost_here / look.estimate.lost()});
  }
  if (loss.elements == 0) return loss;

  // A gradient without one non-zero element says nothing by itself (a frozen branch, LoRA's first step); where others
  // are seen to be flushed, it was most likely flushed as well.
  constexpr double strong = 0.05;
  double lost = 0;
  double lost_visible = 0;
  double worst = 0;
  std::map<std::int64_t, std::int64_t> zero_windows;
  for (const auto& [first, slice] : slices) {
    const double visible = slice.elements - slice.zeros_everywhere;
    const bool flushing = (visible > 0 && slice.lost / visible >= strong) || loss.cast_share >= strong ||
                          (!slice.any_nonzero && slice.scale < 1);
    const double here = slice.lost + (flushing ? slice.zeros_everywhere : 0);
    lost += here;
    lost_visible += slice.lost;
    const double share = here / slice.elements;
    if (share >= notable) {
      if (loss.steps.count == 0) loss.steps.first = first;
      loss.steps.last = std::max(loss.steps.last, slice.last_step);
      loss.steps.count += slice.last_step - first + 1;
    }
    if (share > worst) {
      worst = share;
      loss.scale = slice.scale;
    }
    if (!flushing) continue;
    for (const GradientWindow& window : view.trace().gradients) {
      if (window.first_step != first || !usable(window)) continue;
      if (!window.stats.exponents.empty() || window.stats.nonfinite() != 0) continue;
      by_parameter[window.parameter].first += window.weight * static_cast<double>(window.stats.count);
      ++zero_windows[window.parameter];
    }
  }
  loss.share = lost / loss.elements;
  loss.all_zero = static_cast<std::int64_t>(zero_windows.size());
  for (const auto& [parameter, counts] : by_parameter) {
    if (counts.first > 0)
      loss.parameters.push_back({parameter, counts.first / counts.second, zero_windows.contains(parameter)});
  }
  std::stable_sort(loss.parameters.begin(), loss.parameters.end(),
                   [](const ParameterLoss& a, const ParameterLoss& b) { return a.share > b.share; });

  if (lost > 0) {
    // Parameters of which nothing is seen may need more than is found here; scaling only as far as it fits is the
    // limit.
    const double limit = trace::float_limits(DType::float16).max / 2;
    const double room = largest > 0 && loss.scale > 0 ? std::log2(limit / largest / loss.scale) : 16;
    const int highest = std::clamp(static_cast<int>(std::floor(room)), 0, largest_raise);
    int raise = 0;
    const auto remaining = [&](int powers) {
      double sum = 0;
      for (const Fit& fit : fits)
        sum += fit.weight * fit.estimate.lost_if_raised(powers);
      return sum / loss.elements;
    };
    while (raise < highest && (remaining(raise) > negligible || (lost > lost_visible && raise < std::min(highest, 16))))
      ++raise;
    if (raise > 0) {
      loss.better_scale = loss.scale * std::exp2(raise);
      loss.better_scale_keeps_all = remaining(raise) <= negligible;
    }
  }
  return loss;
}

}  // namespace ampscope::analyzers
