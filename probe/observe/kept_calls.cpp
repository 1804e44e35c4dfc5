#include "probe/observe/kept_calls.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <unistd.h>

#include "probe/observe/tensor_access.h"

namespace ampscope::observe {
namespace {

// The root cause is not known yet when a call ends. It is one of the first, and of a site one of the first few: before
// the step that did harm there may be one that the scaler skipped as it should.
constexpr std::int64_t max_calls = 64;
constexpr std::uint8_t max_calls_a_site = 4;
constexpr std::int64_t max_bytes = std::int64_t{256} << 20;

/// A copy with a storage of its own: pickling a view would write all that it is a view of.
at::Tensor own_copy(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().cpu().clone(at::MemoryFormat::Contiguous) : tensor;
}

/// Lists become tuples: a typed list is pickled as a call that torch.load refuses with weights_only=True.
c10::IValue plain(const c10::IValue& value) {
  if (value.isTensor()) return own_copy(value.toTensor());
  if (value.isDevice()) return c10::IValue("cpu");
  if (!value.isList()) return value;
  std::vector<c10::IValue> items;
  for (const c10::IValue& item : value.toListRef())
    items.push_back(plain(item));
  return c10::ivalue::Tuple::create(std::move(items));
}

bool write_file(const std::string& path, const std::vector<char>& bytes) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wxb"), std::fclose);
  return file && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
}

}  // namespace

void keep_call(Session& session, const Frame& frame, const trace::NonfiniteEvent& event) noexcept {
  const std::string& folder = session.recorder.options().repro_folder;
  if (folder.empty() || !frame.site || frame.site->calls_kept >= max_calls_a_site) return;
  try {
    const OpInfo& op = *frame.op;
    // What a call wrote to is not what it was given any more.
    if (!op.has_schema || op.mutates || op.random || !frame.keeps_inputs) return;
    const auto handle = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
    if (!handle) return;

    std::vector<at::Tensor> tensors;
    std::int64_t bytes = 0;
    for (std::uint8_t i = 0; i < frame.input_count; ++i) {
      auto strong = frame.inputs[i].tensor.lock();
      if (!strong) return;
      tensors.emplace_back(std::move(strong));
      const c10::TensorImpl& impl = *tensors.back().unsafeGetTensorImpl();
      if (!readable(impl) && !impl.is_wrapped_number()) return;
      bytes += static_cast<std::int64_t>(tensors.back().nbytes());
    }
    if (session.kept_calls.load(std::memory_order_relaxed) >= max_calls ||
        session.kept_call_bytes.load(std::memory_order_relaxed) + bytes > max_bytes) {
      return;
    }

    const c10::impl::ExcludeDispatchKeyGuard no_python(
        c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
    const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset);
    const at::DisableRecordFunctionGuard no_observers;
    const c10::AutoGradMode no_grad(false);
    std::vector<c10::IValue> positional;
    std::vector<c10::IValue> names;
    std::vector<c10::IValue> named;
    std::size_t tensor = 0;
    std::size_t other = 0;
    std::int16_t index = 0;
    for (const c10::Argument& argument : handle->schema().arguments()) {
      c10::IValue value;
      if (tensor < tensors.size() && frame.inputs[tensor].argument == index) {
        value = own_copy(tensors[tensor++]);
      } else {
        if (other >= frame.arguments.size()) return;
        value = plain(frame.arguments[other++]);
      }
      ++index;
      if (argument.kwarg_only()) {
        names.emplace_back(argument.name());
        named.push_back(std::move(value));
      } else {
        positional.push_back(std::move(value));
      }
    }
    std::vector<c10::IValue> call;
    call.emplace_back(op.name);
    call.emplace_back(op.overload);
    call.emplace_back(c10::ivalue::Tuple::create(std::move(positional)));
    call.emplace_back(c10::ivalue::Tuple::create(std::move(names)));
    call.emplace_back(c10::ivalue::Tuple::create(std::move(named)));
    const std::vector<char> pickled = torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(call)));
    const std::string path = folder + "/call" + std::to_string(event.order) + "." + std::to_string(getpid()) + ".pt";
    if (!write_file(path, pickled)) return;
    ++frame.site->calls_kept;
    session.kept_calls.fetch_add(1, std::memory_order_relaxed);
    session.kept_call_bytes.fetch_add(bytes, std::memory_order_relaxed);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a call that cannot be kept is told by the file that is not there
  }
}

}  // namespace ampscope::observe
