// Looking at tensors without changing anything: no dispatcher call, no reference kept.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>

#include "probe/stats/tensor_view.h"
#include "trace/model.h"

namespace ampscope::observe {

[[nodiscard]] trace::DType dtype_of(c10::ScalarType type) noexcept;
[[nodiscard]] inline trace::DType dtype_of(const c10::TensorImpl& tensor) noexcept {
  return dtype_of(c10::typeMetaToScalarType(tensor.dtype()));
}

/// Whether there are values behind it: strided, initialised, not a wrapper (functorch, FakeTensor, DTensor), not lazily
/// conjugated or negated.
[[nodiscard]] bool has_values(const c10::TensorImpl& tensor) noexcept;

/// Whether they can be read here and now: in this process's memory too.
[[nodiscard]] bool readable(const c10::TensorImpl& tensor) noexcept;

/// Address of the first element, null for a tensor without memory. Valid for any strided tensor, also of a device.
[[nodiscard]] const void* address_of(const c10::TensorImpl& tensor) noexcept;

/// A view of a readable tensor for the statistics kernels. False when it has too many dimensions.
[[nodiscard]] bool view_of(const c10::TensorImpl& tensor, stats::TensorView& view) noexcept;

/// Shape, type and device for the trace.
[[nodiscard]] trace::TensorType type_of(const c10::TensorImpl& tensor);

/// The only element of a readable tensor of one element; NaN when it is none.
[[nodiscard]] double scalar_of(const c10::TensorImpl& tensor) noexcept;

/// The tensor of a value, null when it is none or undefined.
[[nodiscard]] inline const at::Tensor* tensor_of(const c10::IValue& value) noexcept {
  if (!value.isTensor()) return nullptr;
  const at::Tensor& tensor = value.toTensor();
  return tensor.defined() ? &tensor : nullptr;
}

/// First tensor of a value that is a tensor or a list of tensors.
[[nodiscard]] inline const at::Tensor* first_tensor(const c10::IValue& value) noexcept {
  if (const at::Tensor* tensor = tensor_of(value)) return tensor;
  if (!value.isTensorList()) return nullptr;
  const auto list = value.toListRef();
  return list.empty() ? nullptr : tensor_of(list[0]);
}

/// Tensors that stand for others: a compiler's, without values, or wrappers around real ones.
enum class Stand : std::uint8_t { real, fake, wrapper };

/// What a call's tensors are; one without values decides.
[[nodiscard]] Stand stand_of(c10::ArrayRef<const c10::IValue> inputs);

}  // namespace ampscope::observe
