#include "probe/stats/cpu/runs.h"

#include <algorithm>
#include <cstring>

namespace ampscope::stats {

namespace {

// Pieces at least this long are scanned where they lie: below it, starting a scan costs more than copying.
constexpr std::int64_t direct_bytes = 2048;

struct RealType {
  Format format = Format::none;
  std::size_t bytes = 0;
  bool complex = false;
};

RealType real_type(trace::DType dtype) {
  switch (dtype) {
    case trace::DType::float16:
      return {Format::float16, 2, false};
    case trace::DType::bfloat16:
      return {Format::bfloat16, 2, false};
    case trace::DType::float32:
      return {Format::float32, 4, false};
    case trace::DType::float64:
      return {Format::float64, 8, false};
    case trace::DType::float8_e4m3fn:
      return {Format::e4m3fn, 1, false};
    case trace::DType::float8_e5m2:
      return {Format::e5m2, 1, false};
    case trace::DType::float8_e4m3fnuz:
      return {Format::e4m3fnuz, 1, false};
    case trace::DType::float8_e5m2fnuz:
      return {Format::e5m2fnuz, 1, false};
    case trace::DType::complex64:
      return {Format::float32, 4, true};
    case trace::DType::complex128:
      return {Format::float64, 8, true};
    default:
      return {};
  }
}

template <typename Element>
void copy_strided(unsigned char* to, const unsigned char* from, std::int64_t stride, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(to + i * sizeof(Element), from, sizeof(Element));
    from += stride * static_cast<std::int64_t>(sizeof(Element));
  }
}

}  // namespace

Runs::Runs(const TensorView& view, Repeats repeats) noexcept {
  const RealType type = real_type(view.dtype);
  if (type.format == Format::none || view.data == nullptr || view.count <= 0) return;
  data_ = static_cast<const unsigned char*>(view.data);
  format_ = type.format;
  element_bytes_ = type.bytes;
  finished_ = false;
  if (view.contiguous) {
    dims_ = 1;
    sizes_[0] = type.complex ? 2 * view.count : view.count;
    strides_[0] = 1;
    index_[0] = 0;
  } else {
    set_shape(view, repeats, type.complex);
  }
}

Format Runs::format() const noexcept {
  return format_;
}

std::uint64_t Runs::repeats() const noexcept {
  return repeats_;
}

void Runs::set_shape(const TensorView& view, Repeats repeats, bool complex) noexcept {
  struct Dimension {
    std::int64_t size;
    std::int64_t stride;
  };
  Dimension dimensions[max_dims];
  int dims = 0;
  for (int i = 0; i < std::clamp(view.dims, 0, TensorView::max_dims); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t size = view.sizes[at];
    std::int64_t stride = complex ? 2 * view.strides[at] : view.strides[at];
    if (size <= 0) {
      finished_ = true;
      return;
    }
    if (size == 1) continue;
    if (stride == 0 && repeats == Repeats::once) {
      repeats_ *= static_cast<std::uint64_t>(size);
      continue;
    }
    if (stride < 0) {
      // The order of the elements does not matter: start at the other end.
      data_ += (size - 1) * stride * static_cast<std::int64_t>(element_bytes_);
      stride = -stride;
    }
    dimensions[dims++] = {size, stride};
  }
  if (complex) dimensions[dims++] = {2, 1};

  // Insertion sort by stride, repeats outermost: at most 17 entries and no call into code that might allocate.
  const auto belongs_outside = [](const Dimension& a, const Dimension& b) {
    return b.stride != 0 && (a.stride == 0 || a.stride > b.stride);
  };
  for (int i = 1; i < dims; ++i) {
    const Dimension moving = dimensions[i];
    int to = i;
    for (; to > 0 && belongs_outside(dimensions[to - 1], moving); --to)
      dimensions[to] = dimensions[to - 1];
    dimensions[to] = moving;
  }
  dims_ = 0;
  for (int i = 0; i < dims; ++i) {
    if (dims_ > 0 && strides_[dims_ - 1] * sizes_[dims_ - 1] == dimensions[i].stride) {
      sizes_[dims_ - 1] *= dimensions[i].size;
      continue;
    }
    sizes_[dims_] = dimensions[i].size;
    strides_[dims_] = dimensions[i].stride;
    index_[dims_] = 0;
    ++dims_;
  }
  if (dims_ == 0) {
    sizes_[0] = 1;
    strides_[0] = 1;
    index_[0] = 0;
    dims_ = 1;
  }
  direct_ = strides_[0] == 1 && (dims_ == 1 || sizes_[0] * static_cast<std::int64_t>(element_bytes_) >= direct_bytes);
}

void Runs::advance_outer() noexcept {
  for (int d = 1; d < dims_; ++d) {
    const std::int64_t step = strides_[d] * static_cast<std::int64_t>(element_bytes_);
    data_ += step;
    if (++index_[d] < sizes_[d]) return;
    data_ -= sizes_[d] * step;
    index_[d] = 0;
  }
  finished_ = true;
}

std::size_t Runs::gather() noexcept {
  const std::size_t capacity = buffer_bytes / element_bytes_;
  const std::int64_t stride = strides_[0];
  std::size_t filled = 0;
  while (!finished_ && filled < capacity) {
    const std::size_t wanted = std::min(static_cast<std::size_t>(sizes_[0] - index_[0]), capacity - filled);
    const unsigned char* from = data_ + index_[0] * stride * static_cast<std::int64_t>(element_bytes_);
    unsigned char* to = buffer_ + filled * element_bytes_;
    if (stride == 1) {
      std::memcpy(to, from, wanted * element_bytes_);
    } else {
      switch (element_bytes_) {
        case 1:
          copy_strided<std::uint8_t>(to, from, stride, wanted);
          break;
        case 2:
          copy_strided<std::uint16_t>(to, from, stride, wanted);
          break;
        case 4:
          copy_strided<std::uint32_t>(to, from, stride, wanted);
          break;
        default:
          copy_strided<std::uint64_t>(to, from, stride, wanted);
          break;
      }
    }
    filled += wanted;
    index_[0] += static_cast<std::int64_t>(wanted);
    if (index_[0] == sizes_[0]) {
      index_[0] = 0;
      advance_outer();
    }
  }
  return filled;
}

bool Runs::next(Run& run) noexcept {
  if (finished_) return false;
  if (direct_) {
    run = {data_, static_cast<std::size_t>(sizes_[0])};
    advance_outer();
    return true;
  }
  run.count = gather();
  run.data = buffer_;
  return true;
}

}  // namespace ampscope::stats
