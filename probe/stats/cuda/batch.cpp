#include "probe/stats/cuda/batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ampscope::stats::cuda {
namespace {

Format format_of(trace::DType dtype) noexcept {
  switch (dtype) {
    case trace::DType::float16:
      return Format::float16;
    case trace::DType::bfloat16:
      return Format::bfloat16;
    case trace::DType::float32:
    case trace::DType::complex64:
      return Format::float32;
    case trace::DType::float64:
    case trace::DType::complex128:
      return Format::float64;
    case trace::DType::float8_e4m3fn:
      return Format::e4m3fn;
    case trace::DType::float8_e5m2:
      return Format::e5m2;
    case trace::DType::float8_e4m3fnuz:
      return Format::e4m3fnuz;
    case trace::DType::float8_e5m2fnuz:
      return Format::e5m2fnuz;
    default:
      return Format::none;
  }
}

bool is_complex(trace::DType dtype) noexcept {
  return dtype == trace::DType::complex64 || dtype == trace::DType::complex128;
}

struct Dimension {
  std::int64_t size;
  std::int64_t stride;
};

template <typename F>
double value_of_rank(std::uint64_t rank) noexcept {
  using Bits = typename F::Bits;
  const auto wide = static_cast<Bits>(rank);
  const bool positive = (wide & F::sign_bit) != 0;
  const auto bits = static_cast<Bits>(positive ? wide ^ F::sign_bit : ~wide);
  const double value = F::value(F::magnitude(bits));
  // A zero is +0 in the statistics, whichever it was.
  return positive || value == 0 ? value : -value;
}

template <typename F>
void read_floats(const Row& row, std::uint64_t repeats, FlatStats& into) noexcept {
  const std::uint64_t nonfinite = row.nan + row.positive_infinity + row.negative_infinity;
  into.count += row.count * repeats;
  into.nan += row.nan * repeats;
  into.positive_infinity += row.positive_infinity * repeats;
  into.negative_infinity += row.negative_infinity * repeats;
  if (nonfinite < row.count) {
    constexpr auto all = static_cast<std::uint64_t>(static_cast<typename F::Bits>(~typename F::Bits{0}));
    into.include(value_of_rank<F>(all - (row.smallest - 1)), value_of_rank<F>(row.largest - 1));
  }
  into.add_squares(row.sum_squares * static_cast<double>(repeats));
  // The counts of a double go on into the rows behind.
  const auto* const counts =
      reinterpret_cast<const std::uint64_t*>(reinterpret_cast<const char*>(&row) + offsetof(Row, counts));
  into.zero += counts[0] * repeats;
  for (int field = 1; field < Bins<F>::fields; ++field) {
    if (counts[field] != 0) into.add(field - F::bias, counts[field] * repeats);
  }
  for (int bit = 0; bit < F::fraction_bits; ++bit) {
    const std::uint64_t elements = counts[Bins<F>::fields + bit] * repeats;
    if (elements == 0) continue;
    into.subnormal += elements;
    into.add(bit - F::fraction_bits + 1 - F::bias, elements);
  }
}

double integer_value(std::uint64_t bits, trace::DType dtype) noexcept {
  switch (dtype) {
    case trace::DType::int8:
      return static_cast<std::int8_t>(bits);
    case trace::DType::int16:
      return static_cast<std::int16_t>(bits);
    case trace::DType::int32:
      return static_cast<std::int32_t>(bits);
    case trace::DType::int64:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    default:
      return static_cast<double>(bits);  // bool, uint8
  }
}

}  // namespace

Shape describe(const TensorView& view, Descriptor& descriptor, Geometry& geometry) noexcept {
  descriptor = {};
  geometry = {};
  descriptor.data = view.data;
  descriptor.format = format_of(view.dtype);
  const bool complex = is_complex(view.dtype);
  descriptor.element_bytes = static_cast<std::uint8_t>(trace::element_size(view.dtype) / (complex ? 2 : 1));
  descriptor.count = static_cast<std::uint64_t>(view.count) * (complex ? 2U : 1U);
  if (view.count < 0 || descriptor.element_bytes == 0) return Shape::unsupported;
  if (descriptor.format == Format::none) return view.count == 1 ? Shape::dense : Shape::unsupported;
  if (view.contiguous || view.count == 0) return Shape::dense;
  if (view.dims > TensorView::max_dims) return Shape::unsupported;

  Dimension dimensions[TensorView::max_dims + 1];
  int dims = 0;
  descriptor.count = complex ? 2 : 1;
  const auto* data = static_cast<const unsigned char*>(view.data);
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.dims); ++i) {
    std::int64_t stride = complex ? 2 * view.strides[i] : view.strides[i];
    if (view.sizes[i] == 1 || stride == 0) continue;
    if (stride < 0) {
      data += (view.sizes[i] - 1) * stride * descriptor.element_bytes;
      stride = -stride;
    }
    descriptor.count *= static_cast<std::uint64_t>(view.sizes[i]);
    dimensions[dims++] = {view.sizes[i], stride};
  }
  if (complex) dimensions[dims++] = {2, 1};
  descriptor.data = data;
  std::sort(dimensions, dimensions + dims, [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  for (int i = 0; i < dims; ++i) {
    if (geometry.dims > 0 &&
        geometry.strides[geometry.dims - 1] * geometry.sizes[geometry.dims - 1] == dimensions[i].stride) {
      geometry.sizes[geometry.dims - 1] *= dimensions[i].size;
      continue;
    }
    if (geometry.dims == Geometry::max_dims) return Shape::unsupported;
    geometry.sizes[geometry.dims] = dimensions[i].size;
    geometry.strides[geometry.dims++] = dimensions[i].stride;
  }
  const bool dense = geometry.dims == 0 || (geometry.dims == 1 && geometry.strides[0] == 1);
  return dense ? Shape::dense : Shape::strided;
}

int rows_of(Format format) noexcept {
  int rows = 1;
  with_layout(format, [&](auto layout) { rows = Bins<decltype(layout)>::rows; });
  return rows;
}

std::uint32_t chunks_of(const Descriptor& descriptor) noexcept {
  const std::uint64_t vectors = descriptor.count * descriptor.element_bytes / vector_bytes;
  constexpr std::uint64_t vectors_a_chunk = chunk_bytes / vector_bytes;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (vectors + vectors_a_chunk - 1) / vectors_a_chunk));
}

void add(Batch& batch, Descriptor descriptor, int row) noexcept {
  descriptor.first_chunk = batch.chunks;
  descriptor.row = static_cast<std::uint16_t>(row);
  batch.tensors[batch.count++] = descriptor;
  batch.chunks += chunks_of(descriptor);
}

std::size_t counter_bytes(const Batch& batch) noexcept {
  std::size_t bytes = sizeof(std::uint32_t) * Bins<Float64>::count;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    with_layout(batch.tensors[i].format, [&](auto layout) {
      bytes = std::max(bytes, static_cast<std::size_t>(warps) * Bins<decltype(layout)>::warp_bytes);
    });
  }
  return bytes;
}

void read_row(const Row& row, const TensorView& view, FlatStats& into) noexcept {
  const Format format = format_of(view.dtype);
  if (format == Format::none) {
    const double value = integer_value(row.value, view.dtype);
    ++into.count;
    into.include(value, value);
    return;
  }
  if (row.count == 0) return;
  const std::uint64_t elements = static_cast<std::uint64_t>(view.count) * (is_complex(view.dtype) ? 2U : 1U);
  with_layout(format, [&](auto layout) { read_floats<decltype(layout)>(row, elements / row.count, into); });
}

}  // namespace ampscope::stats::cuda
