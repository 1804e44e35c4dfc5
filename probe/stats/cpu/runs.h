// A tensor of any strides as a sequence of dense pieces, in no particular order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/stats/cpu/formats.h"
#include "probe/stats/tensor_view.h"

namespace ampscope::stats {

/// `count` elements that lie one after the other.
struct Run {
  const void* data = nullptr;
  std::size_t count = 0;
};

/// Long dense pieces are handed out where they lie; anything shorter is gathered into a buffer first. A run is valid
/// until the next one is asked for. Member functions are out of line on purpose, see formats.h.
class Runs {
 public:
  enum class Repeats : std::uint8_t {
    each,  ///< an element that is seen n times (stride 0) comes n times
    once,  ///< it comes once; repeats() says how often it stands for
  };

  Runs(const TensorView& view, Repeats repeats) noexcept;

  [[nodiscard]] Format format() const noexcept;
  [[nodiscard]] std::uint64_t repeats() const noexcept;
  /// False when there is no further run.
  bool next(Run& run) noexcept;

 private:
  // One more than a view's: the real and the imaginary part.
  static constexpr int max_dims = TensorView::max_dims + 1;
  static constexpr std::size_t buffer_bytes = 8192;

  void set_shape(const TensorView& view, Repeats repeats, bool complex) noexcept;
  void advance_outer() noexcept;
  std::size_t gather() noexcept;

  const unsigned char* data_ = nullptr;
  Format format_ = Format::none;
  std::size_t element_bytes_ = 0;
  std::uint64_t repeats_ = 1;
  bool direct_ = true;    // the innermost dimension is handed out as it lies
  bool finished_ = true;  // nothing is left
  int dims_ = 0;
  std::int64_t sizes_[max_dims];    // innermost (smallest stride) first
  std::int64_t strides_[max_dims];  // in elements; not negative
  std::int64_t index_[max_dims];
  alignas(64) unsigned char buffer_[buffer_bytes];
};

}  // namespace ampscope::stats
