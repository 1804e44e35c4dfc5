#include "analyzers/core/flush.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ampscope::analyzers {

namespace {

constexpr int families = 3;

/// Share of values below `x` for scale `a`.
double cumulative(int family, double x, double a) {
  const double y = x / a;
  switch (family) {
    case 0:  // half-normal
      return std::erf(y);
    case 1:  // exponential
      return -std::expm1(-y);
    default: {  // density exp(-sqrt(y))
      const double root = std::sqrt(y);
      return 1 - (1 + root) * std::exp(-root);
    }
  }
}

/// Where values begin to be counted in the binade that is `above` powers of two over the smallest value, in units of
/// that value. Rounding to the grid of subnormals moves the border down by half a unit: from 0.5 units on, a value
/// becomes 1.
double border(int above) {
  return above <= 0 ? 0.5 : std::exp2(above) - (above <= 10 ? 0.5 : 0.0);
}

double log_width(int above) {
  return std::log2(border(above + 1) / border(above));
}

double log_middle(int above) {
  return (std::log2(border(above + 1)) + std::log2(border(above))) / 2;
}

}  // namespace

FlushEstimate::FlushEstimate(const trace::TensorStats& stats, int smallest) {
  const trace::ExponentHistogram& histogram = stats.exponents;
  total_ = static_cast<double>(histogram.total());
  if (total_ == 0 || stats.zero == 0) return;
  // Values below the edge show that the edge does not bind here: the tensor was computed in a wider type.
  if (static_cast<double>(histogram.below(smallest)) > 0.01 * total_) return;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    const int above = histogram.first + static_cast<int>(i) - smallest;
    if (above >= 0) {
      counts_[static_cast<std::size_t>(std::min(above, binades - 1))] += static_cast<double>(histogram.counts[i]);
    }
  }
  if (counts_[0] == 0 || counts_[0] + counts_[1] + counts_[2] < 4) return;

  int mode = 0;
  for (int k = 1; k < binades - 1; ++k) {
    if (counts_[static_cast<std::size_t>(k)] / log_width(k) > counts_[static_cast<std::size_t>(mode)] / log_width(mode))
      mode = k;
  }
  // Weighted straight line through the logarithm of the density in the three lowest binades.
  double w = 0;
  double wx = 0;
  double wy = 0;
  double wxx = 0;
  double wxy = 0;
  int points = 0;
  for (int k = 0; k < 3; ++k) {
    const double count = counts_[static_cast<std::size_t>(k)];
    if (count == 0) continue;
    const double x = log_middle(k);
    const double y = std::log2(count / log_width(k));
    w += count;
    wx += count * x;
    wy += count * y;
    wxx += count * x * x;
    wxy += count * x * y;
    ++points;
  }
  const double spread = w * wxx - wx * wx;
  const double slope = points >= 2 && spread > 0 ? (w * wxy - wx * wy) / spread : 0;
  if (slope >= 0.6 || (mode >= 4 && slope >= 0.25)) {
    shape_ = Shape::tail;
    // Constant density near zero has slope 1; nothing that training produces falls faster than by 3.
    slope_ = std::min(slope, 3.0);
    const double at_middle = std::log2(counts_[0] / log_width(0));
    density_ = std::exp2(at_middle + slope_ * (-1 - log_middle(0)));
    // A flat slope far below the bulk belongs to a wide, bell-shaped distribution of exponents, whose tail bends down.
    curvature_ = slope_ < 0.8 ? slope_ / (log_middle(mode) + 1) : 0;
  } else {
    fit_bulk();
  }
  lost_ = std::min(below(0), static_cast<double>(stats.zero));
}

void FlushEstimate::fit_bulk() {
  int highest = binades - 1;
  while (highest > 0 && counts_[static_cast<std::size_t>(highest)] == 0)
    --highest;
  double best = -std::numeric_limits<double>::infinity();
  for (int family = 0; family < families; ++family) {
    for (int quarter = -20; quarter < 4 * (highest + 3); ++quarter) {
      const double width = std::exp2(quarter / 4.0);
      const double seen = 1 - cumulative(family, border(0), width);
      if (seen < 0.03) continue;  // All but everything lost: the little that is left cannot tell how much.
      double likelihood = 0;
      double from = cumulative(family, border(0), width);
      for (int k = 0; k <= highest; ++k) {
        const double to = k < highest ? cumulative(family, border(k + 1), width) : 1;
        const double count = counts_[static_cast<std::size_t>(k)];
        if (count > 0) likelihood += count * std::log(std::max((to - from) / seen, 1e-15));
        from = to;
      }
      if (likelihood > best) {
        best = likelihood;
        shape_ = Shape::bulk;
        family_ = family;
        width_ = width;
      }
    }
  }
}

double FlushEstimate::below(double powers) const {
  switch (shape_) {
    case Shape::none:
      return 0;
    case Shape::tail: {
      if (curvature_ == 0) return density_ * std::exp2(-slope_ * powers) / (slope_ * std::numbers::ln2);
      constexpr double step = 0.05;
      double sum = 0;
      for (int i = 0; i < 800; ++i) {
        const double t = powers + i * step;
        sum += std::exp2(-(slope_ * t + curvature_ * t * t / 2)) * step;
      }
      return density_ * sum;
    }
    case Shape::bulk: {
      const double hidden = cumulative(family_, border(0), width_);
      return total_ / (1 - hidden) * cumulative(family_, border(0) * std::exp2(-powers), width_);
    }
  }
  return 0;
}

double FlushEstimate::lost_if_raised(int powers) const {
  const double all = below(0);
  return all > 0 ? lost_ * std::min(1.0, below(powers) / all) : 0;
}

}  // namespace ampscope::analyzers
