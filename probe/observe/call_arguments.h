// The arguments of a call that has just ended, put together again in the order of its schema.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "probe/observe/thread_state.h"

namespace ampscope::observe {

/// While it lives, ops of ours leave no trace: no gradient history, no autocast, nothing of Python in between, and the
/// observers of other tools stay blind.
struct Unobserved {
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
  c10::impl::ExcludeDispatchKeyGuard no_python{
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot})};
  c10::impl::ExcludeDispatchKeyGuard no_autograd{c10::autograd_dispatch_keyset};
  at::DisableRecordFunctionGuard no_observers;
  c10::AutoGradMode no_grad{false};
};

struct CallArguments {
  std::optional<c10::OperatorHandle> op;  ///< empty when the arguments could not be had
  std::vector<c10::IValue> values;        ///< in schema order
  std::string missing;                    ///< why they could not
};

/// Arguments of the op of `frame`, of tensors in this process's memory. Ops that write to their arguments, draw random
/// numbers or take lists of tensors are refused: called again with these they would not do the same. The result holds
/// references and must not outlive the callback.
/// `target` stands for the first argument of an op that writes to that one alone, as it was before; without it such an
/// op is refused as well.
[[nodiscard]] CallArguments arguments_of(const Frame& frame, const c10::IValue& target = {});

}  // namespace ampscope::observe
