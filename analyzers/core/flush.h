// How many values were flushed to zero on the way through a narrow type, estimated from those that were not.
//
// Zeros alone do not say: a dead ReLU, an embedding row that is not in the batch, an expert that was not used all give
// zeros that fp32 has too. What tells them apart is the lower edge of the histogram of exponents: a distribution that
// runs on into the smallest subnormal values was cut there, one that ends above was not. The part below the edge is
// continued from the part above: with the local slope where the edge lies in the tail, with the best of three
// distributions (half-normal, exponential, stretched exponential) where it lies at the bulk. Against gradients computed
// in both precisions the estimate is mostly within a factor of two, and low rather than high where other zeros are
// present.
#pragma once

#include <array>

#include "trace/tensor_stats.h"

namespace ampscope::analyzers {

class FlushEstimate {
 public:
  /// `smallest` is the exponent of the smallest positive value that could get through, in the units of `stats`: -24 for
  /// fp16, -24 - log2(scale) for gradients that were scaled there and are recorded unscaled.
  FlushEstimate(const trace::TensorStats& stats, int smallest);

  /// Elements flushed to zero that are not zero in exact arithmetic; never more than there are zeros.
  [[nodiscard]] double lost() const noexcept { return lost_; }
  /// The same had the values been 2^`powers` times as large.
  [[nodiscard]] double lost_if_raised(int powers) const;

 private:
  enum class Shape : unsigned char { none, tail, bulk };

  void fit_bulk();
  [[nodiscard]] double below(double powers) const;  ///< uncapped estimate of what lies below the edge moved down

  static constexpr int binades = 40;
  std::array<double, binades> counts_{};  ///< by exponent above the edge; the last holds everything higher
  double total_ = 0;
  Shape shape_ = Shape::none;
  double density_ = 0;    ///< tail: per power of two, at the edge
  double slope_ = 0;      ///< tail: of log2(density)
  double curvature_ = 0;  ///< tail: by which the slope grows for each power of two further down
  int family_ = 0;        ///< bulk: index of the distribution
  double width_ = 1;      ///< bulk: its scale, in units of the smallest value
  double lost_ = 0;
};

}  // namespace ampscope::analyzers
