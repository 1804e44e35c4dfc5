#include "probe/observe/kept_calls.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <unistd.h>

#include "probe/observe/call_arguments.h"
#include "probe/observe/tensor_access.h"

namespace ampscope::observe {
namespace {

// The root cause is not known yet when a call ends. It is one of the first, and of a site one of the first few: before
// the step that did harm there may be one that the scaler skipped as it should.
constexpr std::int64_t max_calls = 64;
constexpr std::uint8_t max_calls_a_site = 4;
constexpr std::int64_t max_bytes = std::int64_t{256} << 20;
/// Of what an in-place op overwrites: copied before every such op, for the one that may turn out to be the cause.
constexpr std::int64_t max_target_bytes = std::int64_t{4} << 20;

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
    const CallArguments arguments = arguments_of(frame, frame.before_write);
    if (!arguments.op) return;
    std::int64_t bytes = 0;
    for (const c10::IValue& value : arguments.values) {
      if (const at::Tensor* const tensor = tensor_of(value)) bytes += static_cast<std::int64_t>(tensor->nbytes());
    }
    if (session.kept_calls.load(std::memory_order_relaxed) >= max_calls ||
        session.kept_call_bytes.load(std::memory_order_relaxed) + bytes > max_bytes) {
      return;
    }

    const Unobserved unobserved;
    std::vector<c10::IValue> positional;
    std::vector<c10::IValue> names;
    std::vector<c10::IValue> named;
    for (std::size_t i = 0; i < arguments.values.size(); ++i) {
      const c10::Argument& argument = arguments.op->schema().arguments()[i];
      if (argument.kwarg_only()) names.emplace_back(argument.name());
      (argument.kwarg_only() ? named : positional).push_back(plain(arguments.values[i]));
    }
    std::vector<c10::IValue> call;
    call.emplace_back(frame.op->name);
    call.emplace_back(frame.op->overload);
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

bool keep_before_write(const Session& session, Frame& frame, c10::ArrayRef<const c10::IValue> inputs) noexcept {
  if (session.recorder.options().repro_folder.empty() || !frame.op->mutates_first || inputs.empty()) return false;
  const at::Tensor* const target = tensor_of(inputs[0]);
  if (!target) return false;
  const c10::TensorImpl& impl = *target->unsafeGetTensorImpl();
  if (!trace::is_floating(dtype_of(impl)) || !readable(impl)) return false;
  if (static_cast<std::int64_t>(target->nbytes()) > max_target_bytes) return false;
  try {
    const Unobserved unobserved;
    frame.before_write = own_copy(*target);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace ampscope::observe
