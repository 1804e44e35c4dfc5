#include "probe/observe/tensor_access.h"

#include <limits>

#include <c10/core/Layout.h>

#include "probe/observe/device_library.h"

namespace ampscope::observe {

trace::DType dtype_of(c10::ScalarType type) noexcept {
  using c10::ScalarType;
  switch (type) {
    case ScalarType::Half:
      return trace::DType::float16;
    case ScalarType::BFloat16:
      return trace::DType::bfloat16;
    case ScalarType::Float:
      return trace::DType::float32;
    case ScalarType::Double:
      return trace::DType::float64;
    case ScalarType::Float8_e4m3fn:
      return trace::DType::float8_e4m3fn;
    case ScalarType::Float8_e5m2:
      return trace::DType::float8_e5m2;
    case ScalarType::Float8_e4m3fnuz:
      return trace::DType::float8_e4m3fnuz;
    case ScalarType::Float8_e5m2fnuz:
      return trace::DType::float8_e5m2fnuz;
    case ScalarType::Bool:
      return trace::DType::boolean;
    case ScalarType::Byte:
      return trace::DType::uint8;
    case ScalarType::Char:
      return trace::DType::int8;
    case ScalarType::Short:
      return trace::DType::int16;
    case ScalarType::Int:
      return trace::DType::int32;
    case ScalarType::Long:
      return trace::DType::int64;
    case ScalarType::ComplexFloat:
      return trace::DType::complex64;
    case ScalarType::ComplexDouble:
      return trace::DType::complex128;
    default:
      return trace::DType::other;
  }
}

bool has_values(const c10::TensorImpl& tensor) noexcept {
  using c10::DispatchKey;
  static constexpr c10::DispatchKeySet wrappers(
      {DispatchKey::Python, DispatchKey::PythonTLSSnapshot, DispatchKey::Functionalize, DispatchKey::FuncTorchBatched,
       DispatchKey::FuncTorchGradWrapper, DispatchKey::FuncTorchVmapMode, DispatchKey::Conjugate, DispatchKey::Negative,
       DispatchKey::ZeroTensor, DispatchKey::BatchedNestedTensor, DispatchKey::NestedTensor});
  if (tensor.layout() != c10::kStrided || !tensor.has_storage()) return false;
  if (tensor.has_symbolic_sizes_strides() || tensor.is_python_dispatch() || tensor.is_wrapped_number()) return false;
  // Wrapped numbers are constants of the program; they are recorded as scalars, not as tensors.
  if (tensor.key_set().has_any(wrappers)) return false;
  return tensor.numel() == 0 || (tensor.dtype_initialized() && tensor.unsafe_storage().data() != nullptr);
}

bool readable(const c10::TensorImpl& tensor) noexcept {
  return tensor.is_cpu() && has_values(tensor) && !host_stands_in_for_device();
}

const void* address_of(const c10::TensorImpl& tensor) noexcept {
  if (tensor.layout() != c10::kStrided || !tensor.has_storage()) return nullptr;
  // data() of the const storage does not materialise a copy-on-write storage.
  if (tensor.has_symbolic_sizes_strides() || tensor.is_python_dispatch()) return nullptr;
  const auto* base = static_cast<const char*>(tensor.unsafe_storage().data());
  if (!base || !tensor.dtype_initialized()) return nullptr;
  return base + tensor.storage_offset() * static_cast<std::int64_t>(tensor.itemsize());
}

bool view_of(const c10::TensorImpl& tensor, stats::TensorView& view) noexcept {
  view.data = address_of(tensor);
  view.dtype = dtype_of(tensor);
  view.count = tensor.numel();
  view.contiguous = tensor.is_non_overlapping_and_dense();
  view.dims = 0;
  if (view.contiguous) return true;
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  if (sizes.size() > stats::TensorView::max_dims) return false;
  view.dims = static_cast<int>(sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    view.sizes[i] = sizes[i];
    view.strides[i] = strides[i];
  }
  return true;
}

trace::TensorType type_of(const c10::TensorImpl& tensor) {
  trace::TensorType type;
  type.dtype = dtype_of(tensor);
  if (!tensor.has_symbolic_sizes_strides() && tensor.layout() == c10::kStrided) {
    type.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
  }
  type.device = tensor.device().str();
  type.requires_grad = tensor.requires_grad();
  return type;
}

double scalar_of(const c10::TensorImpl& tensor) noexcept {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const void* address = address_of(tensor);
  if (!address || !tensor.is_cpu() || tensor.numel() != 1) return nan;
  if (host_stands_in_for_device() && !tensor.is_wrapped_number()) return nan;
  switch (c10::typeMetaToScalarType(tensor.dtype())) {
    case c10::ScalarType::Float:
      return static_cast<double>(*static_cast<const float*>(address));
    case c10::ScalarType::Double:
      return *static_cast<const double*>(address);
    case c10::ScalarType::Half:
      return static_cast<double>(static_cast<float>(*static_cast<const c10::Half*>(address)));
    case c10::ScalarType::BFloat16:
      return static_cast<double>(static_cast<float>(*static_cast<const c10::BFloat16*>(address)));
    case c10::ScalarType::Int:
      return *static_cast<const std::int32_t*>(address);
    case c10::ScalarType::Long:
      return static_cast<double>(*static_cast<const std::int64_t*>(address));
    default:
      return nan;
  }
}

Stand stand_of(c10::ArrayRef<const c10::IValue> inputs) {
  Stand stand = Stand::real;
  for (const c10::IValue& value : inputs) {
    const at::Tensor* tensor = first_tensor(value);
    if (!tensor) continue;
    const c10::TensorImpl& impl = *tensor->unsafeGetTensorImpl();
    if (impl.is_meta() || impl.has_symbolic_sizes_strides() ||
        (impl.has_storage() && impl.unsafe_storage().device_type() == c10::DeviceType::Meta)) {
      return Stand::fake;
    }
    static constexpr c10::DispatchKeySet wrappers(
        {c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize});
    if (impl.is_python_dispatch() || impl.key_set().has_any(wrappers)) {
      stand = Stand::wrapper;
    }
  }
  return stand;
}

}  // namespace ampscope::observe
